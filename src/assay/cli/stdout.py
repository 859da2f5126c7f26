"""Standard output that cannot stop a verb: a reader that went away, a full disk or a terminal without Unicode only
affects what is shown."""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PLAIN = {
    "✓": "+",
    "✗": "x",
    "◐": "o",
    "●": "*",
    "◒": "~",
    "○": "o",
    "→": "->",
    "×": "x",
    "–": "-",
    "—": "--",
    "−": "-",
    "…": "...",
    "’": "'",
    "±": "+-",
    "µ": "u",
    "≤": "<=",
    "≥": ">=",
    "·": ".",
    "│": "|",
    "─": "-",
    "━": "-",
}
"""Replacements for characters that the encoding does not have."""


def _plainly(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return "".join(_PLAIN.get(c, "?") for c in error.object[error.start : error.end]), error.end


codecs.register_error("assay_plainly", _plainly)


class Lenient:
    """A text stream that drops what cannot be written, and keeps the reason."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.problem: OSError | None = None

    def write(self, text: str) -> int:
        if self.problem is None:
            try:
                return int(self._stream.write(text) or 0)
            except OSError as problem:
                self._end(problem)
        return len(text)

    def flush(self) -> None:
        if self.problem is None:
            try:
                self._stream.flush()
            except OSError as problem:
                self._end(problem)

    def _end(self, problem: OSError) -> None:
        self.problem = problem
        # Otherwise the interpreter would try to write its buffer again at exit, and report the error.
        with contextlib.suppress(Exception):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def lenient() -> Iterator[Lenient]:
    """While open, `sys.stdout` and `sys.stderr` are lenient. Yields the former."""
    before = sys.stdout, sys.stderr
    stream: Any
    for stream in before:
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="assay_plainly")
    with Path(os.devnull).open("w") as null:  # for a stream that a shell's `>&-` closed
        shown, said = (Lenient(stream or null) for stream in before)
        sys.stdout, sys.stderr = shown, said
        try:
            yield shown
        finally:
            shown.flush()
            said.flush()
            sys.stdout, sys.stderr = before


def lost(stream: Lenient) -> str:
    """Return why output was lost; empty if none was, or if the reader closed the pipe."""
    problem = stream.problem
    return "" if problem is None or problem.errno == errno.EPIPE else str(problem.strerror or problem)
