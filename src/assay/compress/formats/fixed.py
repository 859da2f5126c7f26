"""Fixed point: `fixed:WIDTH:FRACTION`, a two's complement integer of WIDTH bits times 2^−FRACTION.

The rule: x · 2^FRACTION is rounded to the nearest integer, ties to even, and saturated to −2^(WIDTH−1) … 2^(WIDTH−1) −
1; the value is that integer times 2^−FRACTION. FRACTION may exceed WIDTH: then all values are below ½. There is one
zero, +0, which −0 and everything up to half a step becomes; subnormal inputs count in full. ±Inf saturates. There is
no code for NaN: it becomes 0. WIDTH is from 2 to 25 and FRACTION from 0 to 126, so that float32 holds every value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, ClassVar

from assay.compress.formats.format import NumberFormat
from assay.lazy import torch

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor


@dataclass(frozen=True)
class Fixed(NumberFormat):
    width: int
    fraction: int

    form: ClassVar[str] = "fixed:WIDTH:FRACTION"
    example: ClassVar[str] = "fixed:8:4"

    def __post_init__(self) -> None:
        self._require("width", self.width, 2, 25)
        self._require("fraction", self.fraction, 0, 126)

    @classmethod
    def parsed(cls, words: Sequence[str]) -> Self:
        if len(words) != 2:
            raise cls._refusal(f"fixed point has two parameters, not {len(words)}")
        return cls(cls._integer(words[0], "width"), cls._integer(words[1], "fraction"))

    @property
    def name(self) -> str:
        return f"fixed:{self.width}:{self.fraction}"

    def bits(self, shape: Sequence[int]) -> int:
        return prod(shape) * self.width

    @property
    def limits(self) -> tuple[float, float]:
        half, step = 2 ** (self.width - 1), 2.0**-self.fraction
        return -half * step, (half - 1) * step

    def _values(self, x: Tensor) -> Tensor:
        # Times a power of two is exact; what overflows float64 on the way saturates all the same.
        steps = (torch.where(x.isnan(), 0.0, x) * 2.0**self.fraction).round()
        low, high = self.limits
        return (steps * 2.0**-self.fraction).clamp(low, high) + 0.0  # −0 + 0 is +0
