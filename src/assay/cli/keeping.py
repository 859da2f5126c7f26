"""Writes the files that a run was asked for. One that cannot be written affects no verdict: a message says so."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli import session

if TYPE_CHECKING:
    from assay.record import Record

_quiet = False


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """While open, a file that cannot be written is not reported: it is tried again at the end."""
    global _quiet
    _quiet = True
    try:
        yield
    finally:
        _quiet = False


def written(what: str, path: Path, write: Callable[[], Any]) -> bool:
    """Call `write` and return whether the file was written. If the disk refuses, print why."""
    try:
        write()
    except OSError as problem:
        if _quiet:
            return False
        session.settle(path)
        session.unkept.append(str(path))
        reason = problem.strerror or str(problem)
        print(f"assay: {what} could not be written to {path}: {reason}\n  → {_fix(problem)}", file=sys.stderr)
        return False
    session.settle(path)
    return True


def _fix(problem: OSError) -> str:
    return {
        "IsADirectoryError": "name a file in that folder",
        "NotADirectoryError": "a part of this path is a file: name another",
        "PermissionError": "name a place that you may write to",
    }.get(type(problem).__name__, "make room there, or name another place")


def document_written(records: Iterable[Record], path: Path, about: dict[str, Any]) -> bool:
    """Write the document of `--out`, all of it or nothing. Return whether it was written."""
    from assay.record import document

    text = json.dumps(document(records, **about), indent=1, default=str) + "\n"
    return written("the records", path, lambda: put(path, text))


def junit_written(records: Sequence[Record], path: Path, verb: str, strict: bool = False) -> bool:
    """Write the file of `--junit`. Return whether it was written."""
    from assay.report.junit import junit

    return written("the JUnit file", path, lambda: put(path, junit(records, verb, session.refused, strict)))


def put(path: Path, text: str) -> None:
    """Write a temporary file and rename it, so that a full disk leaves the old file intact. Write a device directly."""
    data = text.encode("utf-8", "surrogatepass")
    if path.parent.exists() and not path.parent.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path.parent))
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):
            path.write_bytes(data)
            return
    place = path.resolve()
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        mode = place.stat().st_mode & 0o7777 if place.exists() else 0o666 & ~_umask()
        Path(name).chmod(mode)
        Path(name).replace(place)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
