"""A tensor's data, out of the device's memory and into a file, and back bit for bit into the same tensor object."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import AssayError
from assay.models.packed import place
from assay.models.subject import checkpoint
from assay.models.subject.checkpoint import Checkpoint

if TYPE_CHECKING:
    import torch


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
        self.file = place.new_file()
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
            found = self._read()
            for name, kept in self._kept.items():
                data = torch.empty_strided(
                    kept.size, kept.stride, dtype=dtype or kept.dtype, device=device or kept.tensor.device
                )
                kept.tensor.data = data.copy_(found[name])
        self.forget()

    def forget(self) -> None:
        """Remove the file."""
        self._forget()

    def _read(self) -> Mapping[str, torch.Tensor]:
        try:
            found = checkpoint.read(self.file)
        except AssayError as problem:
            raise self._lost(problem.what) from None
        if found.facts != {_ID: self.file.name}:
            raise self._lost(f"{self.file} is another file than the one that was written")
        return found.tensors

    def _lost(self, why: str) -> AssayError:
        names = ", ".join(f"{name} ({kept})" for name, kept in self._kept.items())
        return AssayError(
            f"the original {names} cannot be restored: {why}",
            fix="the layer stays packed; put the file back and undo again, or load the model's weights anew",
        )


def _remove(file: Path, owner: int) -> None:
    if os.getpid() == owner:  # and not in a child that was forked from it
        file.unlink(missing_ok=True)
