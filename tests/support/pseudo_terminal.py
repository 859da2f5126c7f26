"""A command on a real pseudo-terminal, and what a person would see there: the lines after every write."""

import codecs
import fcntl
import os
import pty
import re
import struct
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_ESCAPE = re.compile(r"\x1b(?:\[([0-9;?]*)([A-Za-z])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[=>78M])")
_INCOMPLETE = re.compile(r"\x1b(?:\[[0-9;?]*|\][^\x07\x1b]*|[()])?$")


class Screen:
    """As many lines as are written (nothing scrolls away), of a fixed width. Knows the codes that Rich writes."""

    def __init__(self, columns):
        self.columns, self.row, self.column = columns, 0, 0
        self._lines, self._rest = [[]], ""

    @property
    def lines(self):
        return ["".join(line).rstrip() for line in self._lines]

    def feed(self, text):
        text, position = self._rest + text, 0
        self._rest = ""
        while position < len(text):
            character = text[position]
            if character == "\x1b":
                found = _ESCAPE.match(text, position)
                if found is None:
                    assert _INCOMPLETE.match(text, position), f"not understood: {text[position : position + 20]!r}"
                    self._rest = text[position:]
                    return
                self._control(found[1] or "", found[2] or "")
                position = found.end()
                continue
            position += 1
            if character == "\r":
                self.column = 0
            elif character == "\n":
                self._down()
            elif character == "\b":
                self.column = max(0, self.column - 1)
            elif character >= " ":
                self._put(character)

    def _put(self, character):
        if self.column == self.columns:  # the terminal wraps when the next character comes
            self._down()
            self.column = 0
        line = self._lines[self.row]
        line.extend(" " * (self.column + 1 - len(line)))
        line[self.column] = character
        self.column += 1

    def _down(self):
        self.row += 1
        if self.row == len(self._lines):
            self._lines.append([])

    def _control(self, numbers, letter):
        count = int(numbers) if numbers.isdigit() else 0
        if letter == "A":
            self.row = max(0, self.row - max(1, count))
        elif letter == "B":
            self.row = min(len(self._lines) - 1, self.row + max(1, count))
        elif letter == "G":
            self.column = max(1, count) - 1
        elif letter == "K":
            line = self._lines[self.row]
            if count == 2:
                line.clear()
            else:
                assert count == 0
                del line[self.column :]
        else:
            assert letter in "mhl" or not letter, f"not understood: {numbers}{letter}"


@dataclass(frozen=True)
class Watched:
    code: int
    screens: list
    """The lines on the screen after every write, with the seconds since the start: [(0.2, ["check …"]), …]."""

    @property
    def lines(self):
        """What is left on the screen."""
        return self.screens[-1][1]

    @property
    def text(self):
        return "\n".join(self.lines)


def watch(*command, columns=80, cwd=None, env=None, shell="", interrupt=""):
    """Run Python with these arguments, or a line of shell in which $ASSAY is the command, and look at the screen after
    each write. The terminal's size is what tells the width, unless `env` has COLUMNS. `interrupt`: press Ctrl-C once
    this is on the screen."""
    variables = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests' / 'support'}"}
    variables |= {"TERM": "xterm-256color", "ASSAY": f"{sys.executable} -m assay", "ASSAY_STORE": "none"}
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
        variables.pop(name, None)
    variables |= env or {}
    words = ["bash", "-c", shell] if shell else [sys.executable, *map(str, command)]
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    pid = os.fork()
    if pid == 0:
        try:
            os.login_tty(child)
            os.chdir(cwd or Path.cwd())
            os.execvpe(words[0], words, variables)
        finally:
            os._exit(127)
    os.close(child)
    screen, started, screens = Screen(columns), time.monotonic(), [(0.0, [""])]
    decode = codecs.getincrementaldecoder("utf-8")().decode
    while True:
        try:
            data = os.read(parent, 65536)
        except OSError:  # the last process that had it open is gone
            break
        if not data:
            break
        screen.feed(decode(data))
        screens.append((time.monotonic() - started, screen.lines))
        if interrupt and interrupt in "\n".join(screen.lines):
            os.write(parent, b"\x03")
            interrupt = ""
    os.close(parent)
    return Watched(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), screens)
