"""Moves a tensor's data from the device's memory to a file, and back bit for bit into the same tensor object.

Each process has its own folder for the files, with a file lock held as long as the process lives. The folder of a
killed process is recognised by its free lock, and the next process that spills removes it."""

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
    """Return the name of a file that does not exist yet."""
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
        if _in_place(place):  # no other process swept it before it was locked
            weakref.finalize(place, _leave, folder, os.getpid())  # runs at exit, after the finalizers of its files
            return place
        os.close(place.lock)


def _in_place(place: _Place) -> bool:
    try:
        return os.path.samestat(place.folder.stat(), os.fstat(place.lock))
    except OSError:
        return False


def _leave(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # not in a forked child
        with contextlib.suppress(OSError):  # not empty, or already gone
            folder.rmdir()


def _sweep(root: Path) -> None:
    """Remove the folders whose owners are gone. A folder that cannot be locked for any reason is left alone."""
    for folder in root.iterdir():
        with contextlib.suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(lock)


_ID = "spilled"
"""Key of the file's own name among its facts, so that an intact copy of another file is not mistaken for it."""


@dataclass(frozen=True)
class _Kept:
    tensor: torch.Tensor
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    def __str__(self) -> str:
        return f"{'×'.join(map(str, self.size))} {str(self.dtype).removeprefix('torch.')}"


class Spilled:
    """Tensors that are written to a file and are empty from `release` until `restore`.

    The tensor objects stay the same, with their flags, hooks and optimiser; only their data is elsewhere. The file is
    removed with the last reference to this object, since it could not be restored any more."""

    def __init__(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Write the file without changing the tensors; an error leaves no file behind."""
        self.file = new_file()
        self._kept = {n: _Kept(t, tuple(t.shape), t.stride(), t.dtype) for n, t in tensors.items()}
        checkpoint.write(self.file, Checkpoint(tensors, {_ID: self.file.name}))
        self._forget = weakref.finalize(self, _remove, self.file, os.getpid())
        self.released = False

    @property
    def forgotten(self) -> bool:
        """Whether there is nothing left to restore."""
        return not self._forget.alive

    def release(self) -> None:
        """Release the tensors' memory. Other references to it keep it alive and valid."""
        self.released = True
        for kept in self._kept.values():
            kept.tensor.data = kept.tensor.data.new_empty(0)

    def restore(self, device: torch.device | None = None, dtype: torch.dtype | None = None) -> None:
        """Restore the data; a second call does nothing. `device`, `dtype`: new ones if the model was moved since."""
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
    if os.getpid() == owner:  # not in a forked child
        file.unlink(missing_ok=True)
