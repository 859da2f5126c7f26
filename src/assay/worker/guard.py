"""Tensors with guard bands: each lives inside a larger buffer whose other bytes are known before and checked after."""

from __future__ import annotations

import math
from typing import Any

import torch

PATTERNS = (0xFF, 0x4B)
"""Two contents for everything outside a tensor: NaN in every float format, and a large finite number."""
BAND = 4096
"""Bytes before and after. A page: rows of most overruns land in it; longer ones are compute-sanitizer's."""
_START = 256
"""CUDA's natural alignment of an allocation."""


class Guarded:
    """One tensor of a trial. `spec` has name, dtype (torch's name), shape, strides (elements) and offset (elements)."""

    def __init__(self, spec: dict[str, Any], device: str, band: int = BAND) -> None:
        self.name: str = spec["name"]
        dtype = getattr(torch, spec["dtype"])
        shape, strides = tuple(spec["shape"]), tuple(spec["strides"])
        itemsize = torch.empty((), dtype=dtype).element_size()
        empty = 0 in shape
        span = 0 if empty else itemsize * (1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)))
        self.buffer = torch.empty(
            band + _START + spec["offset"] * itemsize + span + band + _START, dtype=torch.uint8, device=device
        )
        start = band + (-(self.buffer.data_ptr() + band)) % _START + spec["offset"] * itemsize
        self.start, self.end = start, start + span
        self.bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[itemsize]
        flat = self.buffer[start : start + max(span, itemsize)].view(dtype)
        self.tensor = flat.as_strided(shape, strides) if not empty else flat[:0].view(shape)
        self.expected: torch.Tensor | None = None

    def fill_bands(self, pattern: int) -> None:
        self.buffer.fill_(PATTERNS[pattern])

    def put(self, values: torch.Tensor) -> None:
        """Load an input and remember what the whole buffer must look like afterwards."""
        self.tensor.copy_(values)
        self.expected = self.buffer.clone()

    def poison(self, bits: int) -> None:
        """Fill with a bit pattern no honest kernel writes."""
        width = self.bits.itemsize * 8
        signed = bits - (1 << width) if self.bits != torch.uint8 and bits >= 1 << (width - 1) else bits
        self.tensor.view(self.bits).fill_(signed)

    def band_damage(self, pattern: int) -> str:
        """Where a write went outside the tensor; empty if none did."""
        for side, part, base in (
            ("before", self.buffer[: self.start], self.start),
            ("after", self.buffer[self.end :], 0),
        ):
            wrong = (part != PATTERNS[pattern]).nonzero()
            if wrong.numel():
                first, last = int(wrong[0]), int(wrong[-1])
                distance = base - last if side == "before" else first
                return f"{distance} bytes {side} `{self.name}` ({wrong.numel()} bytes in all)"
        return ""

    def input_damage(self) -> tuple[str, str]:
        """(what happened to the values, what happened outside them), each empty if nothing did."""
        if self.expected is None or torch.equal(self.buffer, self.expected):
            return "", ""
        wrong = (self.buffer != self.expected).nonzero().flatten()
        inside = wrong[(wrong >= self.start) & (wrong < self.end)]
        if inside.numel():
            element = (int(inside[0]) - self.start) // self.bits.itemsize
            return f"`{self.name}` was changed, first at element {element} in memory", ""
        first = int(wrong[0])
        where = f"{self.start - first} bytes before" if first < self.start else f"{first - self.end} bytes after"
        return "", f"{where} `{self.name}` ({wrong.numel()} bytes in all)"


def dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a contiguous tensor, in elements."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
