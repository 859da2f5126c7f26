"""Arithmetic in float64 that is exact or rounds once: powers of two, exponents, quotients rounded to integers."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from assay.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

BELOW_ALL = -1100
"""Placeholder for the exponent of zero, smaller than that of any float64."""

LARGEST = (2**24 - 1) * 2.0**104
"""The largest finite float32."""

ROOT_HALF = sqrt(0.5)
"""The smallest float64 above √½, which is irrational: no float64 equals it."""


def power(exponent: Tensor) -> Tensor:
    """Return 2^exponent, for exponents from −1022 to 1023, from its bits, because torch.ldexp uses `pow`."""
    return (exponent.long() + 1023 << 52).view(torch.float64)


def floor_log2(size: Tensor) -> Tensor:
    """Return ⌊log₂ size⌋ for size ≥ 0, from its bits, because a logarithm just below a power of two rounds up to it."""
    return torch.where(size == 0, BELOW_ALL, torch.frexp(size).exponent - 1)


def round_log2(size: Tensor) -> Tensor:
    """Return log₂ size rounded to the nearest integer. A tie would be an odd power of √2, which no float is."""
    mantissa, exponent = torch.frexp(size)
    return torch.where(size == 0, BELOW_ALL, exponent - (mantissa < ROOT_HALF).int())


def nearest(size: Tensor, step: Tensor) -> Tensor:
    """Return size / step rounded to the nearest integer, ties to even, for size ≥ 0 and steps of at most 31 significant
    bits; where it exceeds 2^32, at least 2^32. The float64 quotient may be rounded onto a tie, so size is compared with
    the exact tie."""
    below = (size / step).floor().clamp(max=2.0**32)
    tie, rest = product(below + 0.5, step)
    above_rest = (rest < 0) | ((rest == 0) & (below % 2 == 1))
    return below + ((size > tie) | ((size == tie) & above_rest))


def product(count: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
    """Return count · step, rounded, and the rounding error: their sum is the exact product, for counts that are
    multiples of ½ below 2^33 and steps of at most 31 significant bits."""
    high = (count * 2.0**-16).trunc() * 2.0**16
    large, small = high * step, (count - high) * step  # of at most 48 significant bits: exact
    total = large + small
    return total, small - (total - large)
