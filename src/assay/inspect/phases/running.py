"""Runs one step and records which files it reads and writes, how long it takes, and where an error is."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from assay import host, tool
from assay.errors import AssayError, BuildError
from assay.inspect.phases.step import File, Step
from assay.isa.ptx import line_table

LIMIT = 600.0
"""Seconds that one step may take."""

_NAMED_ONLY = ("--orig_src_file_name", "--orig_src_path_name", "--ident")
"""Options that name the source without reading it."""
_INCLUDE = re.compile(rb'^\s*#\s*include\s+"([^"\n]+)"', re.MULTILINE)
_MARKER = re.compile(rb'^# \d+ "([^"<\n]+)"([ \d]*)$', re.MULTILINE)
"""Matches `# 1 "file.h" 1 3`: the file that the preprocessor took the text from; a 3 marks a system header."""
_COMPLAINTS = (
    re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error", re.MULTILINE),
    re.compile(r"^(?P<file>[^(\n]+)\((?P<line>\d+)\): (?:\w+ )?error", re.MULTILINE),
    re.compile(r"^ptxas (?P<file>.+?), line (?P<line>\d+); (?:error|fatal)", re.MULTILINE),
)
"""Patterns of the error messages of gcc and clang, of NVIDIA's front end, and of ptxas."""


class Failed(Exception):
    def __init__(self, step: Step, error: AssayError) -> None:
        self.step, self.error = step, error


def run(step: Step, folder: Path, stop: threading.Event) -> Step:
    before = _present(folder)
    environment = dict(os.environ)
    for key, value in step.environment.items():
        environment[key] = value.replace(f"${key}", os.environ.get(key, ""))
    start, late = time.perf_counter(), False
    try:
        ran = tool.call(step.command, folder=folder, environment=environment, limit=LIMIT, stop=stop)
    except tool.Missing as missing:
        raise Failed(step, missing) from None
    except tool.TooLong:
        ran, late = tool.Ran(1, "", ""), True
    seconds = time.perf_counter() - start
    after = _present(folder)
    written = {name for name, stamp in after.items() if before.get(name) != stamp}
    reads = [f for f in _read_by(step, folder, written) if f.path not in written]
    writes = tuple(File(name, after[name][0]) for name in sorted(written))
    step = replace(step, reads=tuple(reads), writes=writes, seconds=seconds, output=(ran.stdout + ran.stderr).strip())
    if late:
        problem = BuildError(f"{step.name} was ended after {seconds:.0f} s", fix="a smaller source, or more time")
        raise Failed(step, problem)
    if ran.code:
        raise Failed(step, _error(step, folder, ran.code))
    return step


def _present(folder: Path) -> dict[str, tuple[int, int]]:
    stamps = {}
    for path in folder.iterdir():
        if path.is_file():
            state = path.stat()
            stamps[path.name] = (state.st_size, state.st_mtime_ns)
    return stamps


def _read_by(step: Step, folder: Path, written: set[str]) -> Iterator[File]:
    """Yield the files in the command, those that generated files among them include, and headers in the preprocessed
    text."""
    words = [
        word
        for option, word in pairwise(step.command)
        if option not in _NAMED_ONLY and not word.startswith(_NAMED_ONLY)
    ]
    waiting = [part for word in words for part in (word, *re.split(r'[=,"]', word)[1:])]
    if step.name == "preprocess":
        waiting += [header for name in written for header in _headers(folder / name)]
    seen: set[Path] = set()
    while waiting:
        path = folder / waiting.pop(0)
        if path in seen or not _is_file(path):
            continue
        seen.add(path)
        inside = path.parent == folder
        if step.name == "host compile" and inside and path.name not in written:
            waiting += [name.decode(errors="replace") for name in _INCLUDE.findall(path.read_bytes())]
        yield File(path.name if inside else str(path), path.stat().st_size)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # the word is too long for a file name
        return False


def _headers(preprocessed: Path) -> list[str]:
    """Return the user's own headers, without the system's and CUDA's."""
    roots = tuple(str(r) for r in host.cuda_roots())
    names = (
        m[1].decode(errors="replace") for m in _MARKER.finditer(preprocessed.read_bytes()) if b"3" not in m[2].split()
    )
    return [n for n in dict.fromkeys(names) if not n.startswith(roots) and not n.startswith("/usr/include")]


def _error(step: Step, folder: Path, status: int) -> BuildError:
    output = step.output or f"{step.name} ended with status {status} and printed nothing"
    place = next((m for pattern in _COMPLAINTS if (m := pattern.search(output))), None)
    where = f"{place['file']}:{place['line']}" if place else ""
    if place and step.name == "ptxas":
        where = _source_of(folder / place["file"], int(place["line"])) or where
    fix = "fix the source at the line named above" if place else f"see what {step.name} says above"
    return BuildError(f"{step.name}: {output}", where=where, fix=fix)


def _source_of(ptx: Path, line: int) -> str:
    """Return the source location that this line of PTX comes from; empty if the PTX does not say."""
    table = line_table(ptx.read_text(errors="replace")) if ptx.is_file() else []
    spot = next(reversed(table[:line]), None)
    return f"{spot.file}:{spot.line}" if spot and spot.file else ""
