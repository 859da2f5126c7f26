"""Logarithmic: `log:WIDTH` or `log:WIDTH:e=TOP`, a sign and the number of a power of two.

The rule: of the 2^(WIDTH−1) codes beside the sign, one is zero and the others are the powers 2^TOP, 2^(TOP−1), …, down
to 2^(TOP−n+1), n = 2^(WIDTH−1) − 1 of them. x becomes the power whose exponent is log₂|x| to the nearest integer: the
limit between 2^k and 2^(k+1) is √2 · 2^k, not 1.5 · 2^k, and there are no ties, because no float is an odd power of
√2. Beyond 2^TOP it saturates; below the smallest power divided by √2 it is zero. Zero has a sign, which is x's;
subnormal inputs count in full. ±Inf saturates. There is no code for NaN: it becomes +0. WIDTH is from 2 (−2^TOP, 0,
2^TOP) to 8; TOP is 0 unless it is written, at most 127, and not so low that the smallest power is below 2^−149."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, ClassVar

from assay.compress.formats.exact import power, round_log2
from assay.compress.formats.format import NumberFormat
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

    def bits(self, shape: Sequence[int]) -> int:
        return prod(shape) * self.width

    @property
    def limits(self) -> tuple[float, float]:
        return -(2.0**self.top), 2.0**self.top

    def _values(self, x: Tensor) -> Tensor:
        exponent = torch.where(x.isinf(), self.top, round_log2(x.abs()))
        return torch.where(x.isnan(), 0.0, power_or_zero(exponent, self.top, powers(self.width)).copysign(x))


def powers(width: int) -> int:
    """How many powers of two a code of this width tells apart, beside its sign and zero."""
    return 2 ** (width - 1) - 1


def power_or_zero(exponent: Tensor, top: int | Tensor, count: int) -> Tensor:
    """The powers 2^top, 2^(top−1), … , `count` of them; saturated above, zero below."""
    values = power(torch.minimum(exponent, torch.as_tensor(top, device=exponent.device)).clamp(min=-1022))
    return torch.where(exponent <= top - count, 0.0, values)
