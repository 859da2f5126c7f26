"""Integers with a scale: `int:WIDTH`, `int:WIDTH:channel` or `int:WIDTH:group=N`, code times scale.

The rule: a tensor, a channel or a group (see groups.py) has one scale, a bfloat16: max|x| / q with q = 2^(WIDTH−1) − 1,
rounded to nearest, ties to even, but at least 2^−126 and at most the largest bfloat16 by which q still gives a finite
float32. A code is x / scale to the nearest integer, ties to even, saturated to −q … q; −q − 1 is never used. The value
is code · scale. float32 holds it exactly, because the scale has 8 significant bits; and the scale is near enough to the
quotient that the largest element always has the code ±q, so quantising twice changes nothing. There is one zero, +0. A
group of zeros has the scale 2^−126. A NaN or ±Inf makes the scale NaN, and with it every value of its group. WIDTH is
from 2 (−scale, 0, scale) to 8. A code and the scale are found by comparison with exact products: float64 inputs, too,
are rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp, nan, prod
from typing import TYPE_CHECKING, ClassVar

from assay.compress.formats import groups
from assay.compress.formats.exact import LARGEST, floor_log2, nearest, power
from assay.compress.formats.format import NumberFormat
from assay.compress.formats.groups import WHOLE, Groups
from assay.lazy import torch

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor

SCALE_BITS = 16
SMALLEST = -126
"""The exponent of the smallest normal bfloat16."""


@dataclass(frozen=True)
class Integer(NumberFormat):
    width: int
    groups: Groups = WHOLE

    form: ClassVar[str] = "int:WIDTH, int:WIDTH:channel or int:WIDTH:group=N"
    example: ClassVar[str] = "int:4:group=128"

    def __post_init__(self) -> None:
        self._require("width", self.width, 2, 8)

    @classmethod
    def parsed(cls, words: Sequence[str]) -> Self:
        shared = groups.parsed(words[1:])
        if not words or shared is None:
            raise cls._refusal(f"no such integer format: '{':'.join(['int', *words])}'")
        return cls(cls._integer(words[0], "width"), shared)

    @property
    def name(self) -> str:
        return f"int:{self.width}{self.groups.suffix}"

    def bits(self, shape: Sequence[int]) -> int:
        return prod(shape) * self.width + self.groups.count(shape) * SCALE_BITS

    def _values(self, x: Tensor) -> Tensor:
        rows = self.groups.split(x)
        finite = rows.isfinite().all(-1, keepdim=True)
        size = torch.where(finite, rows.abs(), 0.0)
        scale = self._scale(size.amax(-1, keepdim=True))
        codes = nearest(size, scale).clamp(max=self._most).copysign(rows)
        return self.groups.join(torch.where(finite, codes * scale + 0.0, nan), x.shape)

    def _scale(self, largest: Tensor) -> Tensor:
        unit = power(floor_log2(largest / self._most).clamp(SMALLEST, 127) - 7)
        # The ratio may be rounded up to the next power of two; the nearest bfloat16 is that power then, either way.
        return (nearest(largest, self._most * unit) * unit).clamp(2.0**SMALLEST, self._largest_scale)

    @property
    def _most(self) -> int:
        return 2 ** (self.width - 1) - 1

    @property
    def _largest_scale(self) -> float:
        unit = 2.0 ** (frexp(LARGEST / self._most)[1] - 8)
        return LARGEST / self._most // unit * unit
