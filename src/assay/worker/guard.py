"""Guarded buffers: each tensor lies inside a larger run of bytes whose other bytes are known before and checked after.

Only the geometry is here, so that both sides compute the same. On a CPU the buffers are the shared arena itself, on a
GPU they are copied to the device and back; either way the parent writes them before a call and reads them after it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.dtype import dtype

if TYPE_CHECKING:
    import torch

PATTERNS = (0xFF, 0x4B)
"""Two contents for everything outside a tensor: NaN in every float format, and a large finite number."""
BAND = 4096
"""Bytes before and after. A page: rows of most overruns land in it; longer ones are compute-sanitizer's."""
ALIGN = 256
"""Bytes: CUDA's natural alignment of an allocation. Buffers begin and end at multiples of it."""


@dataclass(frozen=True)
class Room:
    """Where a tensor lies in its buffer, in bytes."""

    start: int
    end: int
    """Behind its last element."""
    size: int
    """Of the whole buffer."""
    dense: bool
    """Every byte between start and end is part of an element."""

    @property
    def span(self) -> int:
        return self.end - self.start


def room(spec: dict[str, Any], band: int = BAND) -> Room:
    """`spec` has dtype, shape, strides and offset, both in elements."""
    itemsize, shape = dtype(spec["dtype"]).itemsize, tuple(spec["shape"])
    span = 0
    if math.prod(shape):
        span = itemsize * (1 + sum((n - 1) * s for n, s in zip(shape, spec["strides"], strict=True)))
    start = band + spec["offset"] * itemsize
    # An empty tensor still needs an address to point at.
    size = -(-(start + max(span, itemsize) + band) // ALIGN) * ALIGN
    return Room(start, start + span, size, span == math.prod(shape) * itemsize)


def inside(buffer: torch.Tensor, spec: dict[str, Any], left_off: int = 0) -> torch.Tensor:
    """The tensor that lies in `buffer`: bytes that begin at a multiple of ALIGN, but for so many that are left off."""
    import torch

    where, number = room(spec), getattr(torch, spec["dtype"])
    shape, start = tuple(spec["shape"]), where.start - left_off
    if not where.span:
        return buffer[start : start + dtype(spec["dtype"]).itemsize].view(number)[:0].view(shape)
    return buffer[start : start + where.span].view(number).as_strided(shape, tuple(spec["strides"]))


def bits(value: torch.Tensor) -> torch.Tensor:
    """The same elements as integers."""
    import torch

    return value.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[value.element_size()])


def outside_damage(buffer: torch.Tensor, spec: dict[str, Any], pattern: int) -> str:
    """Where a write went outside the tensor; empty if none did."""
    import torch

    where, content = room(spec), PATTERNS[pattern]
    for side, part in (("before", buffer[: where.start]), ("after", buffer[where.end :])):
        wrong = (part != content).nonzero()
        if wrong.numel():
            distance = where.start - int(wrong[-1]) if side == "before" else int(wrong[0])
            return f"{distance} bytes {side} `{spec['name']}` ({wrong.numel()} bytes in all)"
    if not where.dense:
        itemsize = dtype(spec["dtype"]).itemsize
        taken = torch.zeros(where.span // itemsize, dtype=torch.bool)
        taken.as_strided(tuple(spec["shape"]), tuple(spec["strides"])).fill_(True)
        between = buffer[where.start : where.end].view(-1, itemsize)[~taken]
        if count := int((between != content).sum()):
            return f"between the rows of `{spec['name']}` ({count} bytes in all)"
    return ""
