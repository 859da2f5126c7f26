"""A tensor's data, out of the device's memory and into a file, and back bit for bit into the same tensor object.

The files lie in a folder for each process, locked as long as the process lives. What a killed process left behind is
known by its lock being free, and removed by the next one that spills."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import threading
import uuid
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay import host
from assay.errors import AssayError, Lacking
from assay.models.subject import checkpoint
from assay.models.subject.checkpoint import Checkpoint

if TYPE_CHECKING:
    import torch


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


_ID = "spilled"
"""The file's own name, among its facts: an intact copy of another file is not taken for it."""


@dataclass(frozen=True)
class _Kept:
    tensor: torch.Tensor
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    def __str__(self) -> str:
        return f"{'×'.join(map(str, self.size))} {str(self.dtype).removeprefix('torch.')}"


class Spilled:
    """Tensors that are written to a file and, from `release` until `restore`, hold nothing.

    The objects stay what they are: same identity, same flags, hooks and optimiser. Only their data is elsewhere. The
    file goes with the last reference to this object: nobody could ask for it any more."""

    def __init__(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Written, and nothing changed yet; an error leaves nothing behind."""
        self.file = new_file()
        self._kept = {n: _Kept(t, tuple(t.shape), t.stride(), t.dtype) for n, t in tensors.items()}
        checkpoint.write(self.file, Checkpoint(tensors, {_ID: self.file.name}))
        self._forget = weakref.finalize(self, _remove, self.file, os.getpid())
        self.released = False

    @property
    def forgotten(self) -> bool:
        """There is nothing to restore any more."""
        return not self._forget.alive

    def release(self) -> None:
        """Give the memory back. A reference that somebody else has to it keeps it alive, and right."""
        self.released = True
        for kept in self._kept.values():
            kept.tensor.data = kept.tensor.data.new_empty(0)

    def restore(self, device: torch.device | None = None, dtype: torch.dtype | None = None) -> None:
        """Harmless if called twice. `device`, `dtype`: others than before, where the model was moved in between."""
        import torch

        if self.forgotten:
            return
        if self.released:
            originals = self._read()
            for name, kept in self._kept.items():
                data = torch.empty_strided(
                    kept.size, kept.stride, dtype=dtype or kept.dtype, device=device or kept.tensor.device
                )
                kept.tensor.data = data.copy_(originals[name])
        self.forget()

    def forget(self) -> None:
        """Remove the file."""
        self._forget()

    def _read(self) -> Mapping[str, torch.Tensor]:
        try:
            kept = checkpoint.read(self.file)
        except AssayError as problem:
            raise self._lost(problem.what) from None
        if kept.facts != {_ID: self.file.name}:
            raise self._lost(f"{self.file} is another file than the one that was written")
        return kept.tensors

    def _lost(self, why: str) -> AssayError:
        names = ", ".join(f"{name} ({kept})" for name, kept in self._kept.items())
        return AssayError(
            f"the original {names} cannot be restored: {why}",
            fix="the layer stays packed; put the file back and undo again, or load the model's weights anew",
        )


def _remove(file: Path, owner: int) -> None:
    if os.getpid() == owner:  # and not in a child that was forked from it
        file.unlink(missing_ok=True)
