"""What is kept of a run besides what it shows: documents in files, records in the store. What cannot be kept costs no
verdict: it is said in one sentence, and the run goes on."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli import session
from assay.errors import AssayError

if TYPE_CHECKING:
    from assay.record import Record

_AGAIN = 5.0
"""Seconds after which a store that refused a record is asked again."""
_quiet = False


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """While open, what cannot be written is not said: it will be tried again when everything is done."""
    global _quiet
    _quiet = True
    try:
        yield
    finally:
        _quiet = False


def written(what: str, path: Path, write: Callable[[], Any]) -> bool:
    """Do `write`; where the disk refuses, say so. Was it written?"""
    try:
        write()
    except OSError as problem:
        if _quiet:
            return False
        session.unkept.append(str(path))
        reason = problem.strerror or str(problem)
        print(f"assay: {what} could not be written to {path}: {reason}\n  → {_fix(problem)}", file=sys.stderr)
        return False
    return True


def _fix(problem: OSError) -> str:
    return {
        "IsADirectoryError": "name a file in that folder",
        "NotADirectoryError": "a part of this path is a file: name another",
        "PermissionError": "name a place that you may write to",
    }.get(type(problem).__name__, "make room there, or name another place")


def document_written(records: Iterable[Record], path: Path, about: dict[str, Any]) -> bool:
    """The document of `--out`, whole or not at all."""
    from assay.record import document

    text = json.dumps(document(records, **about), indent=1, default=str) + "\n"
    return written("the records", path, lambda: put(path, text))


def put(path: Path, text: str) -> None:
    """Write a file beside its place and rename it: a full disk leaves what was there. A device is written at once."""
    data = text.encode("utf-8", "surrogatepass")
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


class Keeper:
    """Puts records into the store, opened with the first. One that is refused waits, and is offered again later."""

    def __init__(self) -> None:
        self._store: Any = None
        self._waiting: list[Record] = []
        self._refused_at = 0.0
        self._problem: Exception | None = None

    def __call__(self, record: Record) -> None:
        if os.environ.get("ASSAY_STORE") == "none":
            return
        self._waiting.append(record)
        if self._problem is None or time.monotonic() > self._refused_at + _AGAIN:
            self._offer()

    def _offer(self, patience: float = 1.0) -> None:
        """Give the store what waits, in order."""
        from assay.store import open_store

        try:
            if self._store is None:
                self._store = open_store(patience=patience)
            while self._waiting:
                self._store.add(self._waiting[0])
                self._waiting.pop(0)
            self._problem = None
        except Exception as problem:  # whatever it is, the verdict stands without it
            self._problem, self._refused_at, self._store = problem, time.monotonic(), None

    def close(self) -> list[Record]:
        """The last try, with more patience; what is left is said. Returns it."""
        if self._waiting:
            self._offer(patience=5.0)
        if self._waiting and self._problem is not None:
            print(f"assay: {_count(self._waiting)} not kept: {_told(self._problem)}", file=sys.stderr)
        return self._waiting


def _count(records: list[Record]) -> str:
    return "1 record is" if len(records) == 1 else f"{len(records)} records are"


def _told(problem: Exception) -> str:
    later = "write them with --out FILE.json and take them in with `assay history --import FILE.json`"
    if isinstance(problem, AssayError):
        return f"{problem.what}\n  → {problem.fix}; or {later}" if problem.fix else f"{problem.what}\n  → {later}"
    return f"{type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''}\n  → {later}"


@contextlib.contextmanager
def kept() -> Iterator[Keeper]:
    keep = Keeper()
    try:
        yield keep
    finally:
        keep.close()
