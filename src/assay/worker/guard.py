"""Guarded buffers: each tensor lies in a larger range of bytes, which are set before a call and checked after it.

Only the geometry is here, so that both sides compute the same. On a CPU the buffers are the shared arena itself, on a
GPU they are copied to the device and back; either way the parent writes them before a call and reads them after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.worker.request import TensorSpec

if TYPE_CHECKING:
    import torch

PATTERNS = (0xFF, 0x4B)
"""Two contents for everything outside a tensor: NaN in every float format, and a large finite number."""
BAND = 4096
"""Bytes before and after a tensor. A page: most overruns by a row land in it; compute-sanitizer finds longer ones."""
ALIGN = 256
"""Bytes: CUDA's natural alignment of an allocation. Buffers begin and end at multiples of it."""


@dataclass(frozen=True)
class Room:
    """Where a tensor lies in its buffer, in bytes."""

    start: int
    end: int
    """The offset behind its last element."""
    size: int
    """Bytes of the whole buffer."""
    dense: bool
    """Whether every byte between start and end is part of an element."""

    @property
    def span(self) -> int:
        return self.end - self.start


def room(spec: TensorSpec, band: int = BAND) -> Room:
    """Return where the tensor lies in its buffer."""
    start = band + spec.offset * spec.itemsize
    # An empty tensor still needs an address to point at.
    size = -(-(start + max(spec.span, spec.itemsize) + band) // ALIGN) * ALIGN
    return Room(start, start + spec.span, size, spec.span == spec.bytes)


def inside(buffer: torch.Tensor, spec: TensorSpec, left_off: int = 0) -> torch.Tensor:
    """Return the tensor in `buffer`, which begins at a multiple of ALIGN and lacks its first `left_off` bytes."""
    import torch

    where, number = room(spec), getattr(torch, spec.dtype)
    start = where.start - left_off
    if not where.span:
        return buffer[start : start + spec.itemsize].view(number)[:0].view(spec.shape)
    return buffer[start : start + where.span].view(number).as_strided(spec.shape, spec.strides)


def alone(spec: TensorSpec, device: str) -> torch.Tensor:
    """Return the tensor in memory of its own, with nothing behind it."""
    import torch

    size = spec.offset + spec.span // spec.itemsize
    flat = torch.empty(size, dtype=getattr(torch, spec.dtype), device=device)
    return flat.as_strided(spec.shape, spec.strides, spec.offset) if spec.span else flat[:0].view(spec.shape)


def outside_damage(buffer: torch.Tensor, spec: TensorSpec, pattern: int) -> str:
    """Describe a write outside the tensor; empty if there was none."""
    import torch

    where, content = room(spec), PATTERNS[pattern]
    for side, part in (("before", buffer[: where.start]), ("after", buffer[where.end :])):
        wrong = (part != content).nonzero()
        if wrong.numel():
            distance = where.start - int(wrong[-1]) if side == "before" else int(wrong[0])
            return f"{distance} bytes {side} `{spec.name}` ({wrong.numel()} bytes in all)"
    if not where.dense:
        taken = torch.zeros(where.span // spec.itemsize, dtype=torch.bool)
        taken.as_strided(spec.shape, spec.strides).fill_(True)
        between = buffer[where.start : where.end].view(-1, spec.itemsize)[~taken]
        if count := int((between != content).sum()):
            return f"between the rows of `{spec.name}` ({count} bytes in all)"
    return ""
