"""A tensor's bits as integers, to write poison and to compare values that may be NaN."""

from __future__ import annotations

from typing import Any


def integer(itemsize: int) -> Any:
    """Return torch's integer dtype of that many bytes."""
    import torch

    return {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[itemsize]


def bits(value: Any) -> Any:
    """Return the same elements as integers, on the same memory."""
    return value.view(integer(value.element_size()))


def signed(pattern: int, itemsize: int) -> int:
    """Return a bit pattern as the number it is in that dtype."""
    width = 8 * itemsize
    return pattern - (1 << width) if width > 8 and pattern >= 1 << (width - 1) else pattern
