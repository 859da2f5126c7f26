"""Where originals lie while they are out of a model: a folder for each process, locked as long as the process lives.

What a killed process left behind is known by its lock being free, and removed by the next one that spills."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import threading
import uuid
import weakref
from dataclasses import dataclass
from pathlib import Path

from assay import host
from assay.errors import Lacking


@dataclass(frozen=True)
class _Place:
    folder: Path
    lock: int
    """A file descriptor."""


_taken: dict[Path, _Place] = {}
_guard = threading.Lock()


def new_file() -> Path:
    """The name of a file that does not exist yet."""
    root = host.data_folder() / "spill"
    with _guard:
        if root not in _taken or not _in_place(_taken[root]):
            try:
                root.mkdir(parents=True, exist_ok=True)
                _sweep(root)
                _taken[root] = _take(root)
            except OSError as problem:
                raise Lacking(
                    f"cannot keep original weights in {root}: {problem.strerror or problem}",
                    fix="make room, or set ASSAY_DATA to a folder that can be written to",
                ) from None
        return _taken[root].folder / f"{uuid.uuid4().hex}.safetensors"


def _take(root: Path) -> _Place:
    while True:
        folder = root / uuid.uuid4().hex
        folder.mkdir()
        place = _Place(folder, os.open(folder, os.O_RDONLY | os.O_CLOEXEC))
        fcntl.flock(place.lock, fcntl.LOCK_SH)
        if _in_place(place):  # nobody swept it before it was locked
            weakref.finalize(place, _leave, folder, os.getpid())  # at exit, after those of the files in it
            return place
        os.close(place.lock)


def _in_place(place: _Place) -> bool:
    try:
        return os.path.samestat(place.folder.stat(), os.fstat(place.lock))
    except OSError:
        return False


def _leave(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # and not in a child that was forked from it
        with contextlib.suppress(OSError):  # it is not empty, or gone
            folder.rmdir()


def _sweep(root: Path) -> None:
    """Remove the folders whose owners are gone. Where a lock cannot be had for another reason, nothing is touched."""
    for folder in root.iterdir():
        with contextlib.suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(lock)
