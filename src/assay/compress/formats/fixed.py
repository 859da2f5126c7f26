"""Fixed point: `fixed:WIDTH:FRACTION`, a two's complement integer of WIDTH bits times 2^−FRACTION.

The rule: x · 2^FRACTION is rounded to the nearest integer, ties to even, and saturated to −2^(WIDTH−1) … 2^(WIDTH−1) −
1; the value is that integer times 2^−FRACTION. FRACTION may exceed WIDTH: then all values are below ½. There is one
zero, +0; −0 and all values up to half a step become +0. Subnormal inputs are not flushed. ±Inf saturates. There is no
code for NaN: it becomes 0. WIDTH is from 2 to 32 and FRACTION from 0 to 126. Up to 25 bits float32 holds every value.
Above, the value is exact in a float64 tensor and rounded once more, to nearest even, in a float32 tensor. For float32
inputs this changes only the largest value, (2^(WIDTH−1) − 1) · 2^−FRACTION, which becomes 2^(WIDTH−1−FRACTION).
Quantising twice changes nothing at any width. A code is the integer in two's complement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from assay.compress.formats.format import NumberFormat
from assay.compress.formats.layout import Layout
from assay.compress.formats.packing import from_twos_complement, twos_complement

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
        self._require("width", self.width, 2, 32)
        self._require("fraction", self.fraction, 0, 126)

    @classmethod
    def parsed(cls, words: Sequence[str]) -> Self:
        if len(words) != 2:
            raise cls._refusal(f"fixed point has two parameters, not {len(words)}")
        return cls(cls._integer(words[0], "width"), cls._integer(words[1], "fraction"))

    @property
    def name(self) -> str:
        return f"fixed:{self.width}:{self.fraction}"

    @property
    def layout(self) -> Layout:
        return Layout(self.width)

    @property
    def limits(self) -> tuple[float, float]:
        half, step = 2 ** (self.width - 1), 2.0**-self.fraction
        return -half * step, (half - 1) * step

    def _quantized(self, x: Tensor) -> Tensor:
        # In float32, too, multiplying by a power of two is exact, and a product that overflows saturates anyway.
        return self._values(x)

    def _values(self, x: Tensor) -> Tensor:
        return self._steps(x).mul_(2.0**-self.fraction)

    def _codes(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return twos_complement(self._steps(x), self.width), {}

    def _decoded(self, codes: Tensor, shared: Mapping[str, Tensor]) -> Tensor:
        return from_twos_complement(codes, self.width).double() * 2.0**-self.fraction

    def _steps(self, x: Tensor) -> Tensor:
        """Return the integers. In a float32 tensor the largest one is rounded if WIDTH is above 25."""
        half = 2 ** (self.width - 1)
        steps = (x * 2.0**self.fraction).round_().clamp_(-half, half - 1)
        return steps.nan_to_num_(0.0).add_(0.0)  # −0 + 0 is +0
