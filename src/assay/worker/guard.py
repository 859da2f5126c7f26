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
"""Two contents for everything outside an input: NaN in every float format, and a large finite number."""
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


def surround(buffer: torch.Tensor, spec: TensorSpec, content: torch.Tensor) -> None:
    """Fill everything outside the tensor with these bytes, repeated."""
    where = room(spec)
    for begin, end in ((0, where.start), (where.end, where.size)) if where.dense else ((0, where.size),):
        buffer[begin:end] = _repeated(content, begin, end)


def _repeated(content: torch.Tensor, begin: int, end: int) -> torch.Tensor:
    """Return the part of the repeated bytes that belongs between two offsets of a buffer."""
    count = len(content)
    if count == 1:
        return content.expand(end - begin)
    return content.roll(-(begin % count)).repeat(-(-(end - begin) // count))[: end - begin]


def outside_damage(buffer: torch.Tensor, spec: TensorSpec, content: torch.Tensor) -> str:
    """Describe a write outside the tensor, which is surrounded by these bytes; empty if there was none."""
    import torch

    where = room(spec)
    for side, begin, end in (("before", 0, where.start), ("after", where.end, where.size)):
        wrong = (buffer[begin:end] != _repeated(content, begin, end)).nonzero()
        if wrong.numel():
            distance = where.start - int(wrong[-1]) if side == "before" else int(wrong[0])
            return f"{distance} bytes {side} `{spec.name}` ({wrong.numel()} bytes in all)"
    if not where.dense:
        taken = torch.zeros(where.span // spec.itemsize, dtype=torch.bool)
        taken.as_strided(spec.shape, spec.strides).fill_(True)
        damaged = buffer[where.start : where.end] != _repeated(content, where.start, where.end)
        if count := int(damaged.view(-1, spec.itemsize)[~taken].sum()):
            return f"between the rows of `{spec.name}` ({count} bytes in all)"
    return ""
