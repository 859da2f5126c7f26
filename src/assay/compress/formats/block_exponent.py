"""The shared exponent of a block of elements, as a byte: e + 127 for e from −127 to 127, and 255 for NaN."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING

from assay.compress.formats.exact import power
from assay.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

BIAS, NOT_A_NUMBER = 127, 255


def stored(exponent: Tensor, finite: Tensor) -> Tensor:
    """Return the bytes, from columns beside the rows of blocks."""
    return torch.where(finite, exponent + BIAS, NOT_A_NUMBER).to(torch.uint8).flatten()


def scale(exponents: Tensor) -> Tensor:
    """Return 2^e, or NaN, as a float64 column beside the rows of blocks."""
    column = exponents.reshape(-1, 1).long()
    return torch.where(column == NOT_A_NUMBER, nan, power(column - BIAS))
