"""Logarithmic: `log:WIDTH` or `log:WIDTH:e=TOP`, a sign and the number of a power of two.

The rule: of the 2^(WIDTH−1) codes besides the sign, one is zero and the others are the n = 2^(WIDTH−1) − 1 powers
2^TOP, 2^(TOP−1), …, 2^(TOP−n+1). x becomes the power whose exponent is log₂|x| rounded to the nearest integer. The
boundary between 2^k and 2^(k+1) is √2 · 2^k, not 1.5 · 2^k, and there are no ties, because no float is an odd power of
√2. Values beyond 2^TOP saturate; those below the smallest power divided by √2 become zero. Zero has x's sign. Subnormal
inputs are not flushed. ±Inf saturates. There is no code for NaN: it becomes +0. WIDTH is from 2 (−2^TOP, 0, 2^TOP) to
8; TOP is 0 by default, at most 127, and not so low that the smallest power is below 2^−149. A code is the sign in its
highest bit and below it the power's number: 0 for zero, 1 for the smallest power, n for 2^TOP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from assay.compress.formats.exact import power, round_log2
from assay.compress.formats.format import NumberFormat
from assay.compress.formats.layout import Layout
from assay.lazy import torch

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor


@dataclass(frozen=True)
class Logarithmic(NumberFormat):
    width: int
    top: int = 0

    form: ClassVar[str] = "log:WIDTH or log:WIDTH:e=TOP"
    example: ClassVar[str] = "log:4:e=0"

    def __post_init__(self) -> None:
        self._require("width", self.width, 2, 8)
        self._require("largest exponent", self.top, powers(self.width) - 150, 127)

    @classmethod
    def parsed(cls, words: Sequence[str]) -> Self:
        match list(words):
            case [width]:
                return cls(cls._integer(width, "width"))
            case [width, top] if top.startswith("e="):
                return cls(cls._integer(width, "width"), cls._integer(top.removeprefix("e="), "largest exponent"))
        raise cls._refusal(f"no such logarithmic format: '{':'.join(['log', *words])}'")

    @property
    def name(self) -> str:
        return f"log:{self.width}" + (f":e={self.top}" if self.top else "")

    @property
    def layout(self) -> Layout:
        return Layout(self.width)

    @property
    def limits(self) -> tuple[float, float]:
        return -(2.0**self.top), 2.0**self.top

    def _values(self, x: Tensor) -> Tensor:
        values = sizes(self._rounded(x), self.top, powers(self.width)).copysign(x)
        return torch.where(x.isnan(), 0.0, values)

    def _codes(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return signed_code(self._rounded(x), x.signbit() & ~x.isnan(), self.width), {}

    def _decoded(self, codes: Tensor, shared: Mapping[str, Tensor]) -> Tensor:
        values = sizes(codes & powers(self.width), self.top, powers(self.width))
        return torch.where(codes > powers(self.width), -values, values)

    def _rounded(self, x: Tensor) -> Tensor:
        """Return the powers' numbers."""
        exponent = torch.where(x.isinf(), self.top, round_log2(x.abs()))
        return torch.where(x.isnan(), 0, ordinals(exponent, self.top, powers(self.width)))


def powers(width: int) -> int:
    """Return how many powers of two a code of this width distinguishes, besides sign and zero."""
    return 2 ** (width - 1) - 1


def ordinals(exponent: Tensor, top: int | Tensor, count: int) -> Tensor:
    """Return the numbers, 1 to `count`, of the powers 2^(top−count+1), … , 2^top; saturated above, 0 (zero) below."""
    return (exponent - (top - count)).clamp(0, count).long()


def sizes(ordinal: Tensor, top: int | Tensor, count: int) -> Tensor:
    """Return the powers with these numbers."""
    return torch.where(ordinal == 0, 0.0, power(ordinal + (top - count)))


def signed_code(ordinal: Tensor, negative: Tensor, width: int) -> Tensor:
    return ordinal | negative.long() << width - 1
