"""Minifloats: `minifloat:eEmM`, a sign, E bits of exponent and M bits of fraction.

The rule: with bias = 2^(E−1) − 1, an exponent field e > 0 and a fraction f mean (1 + f/2^M) · 2^(e − bias), and e = 0
means the subnormal f/2^M · 2^(1 − bias), or with `no-denormals` zero for any f. x becomes the nearest value, ties to
even (the even fraction; half of the smallest number becomes 0), and saturates at the largest value. Zero has x's sign.
By default every code is a finite number, ±Inf becomes the largest value and NaN becomes +0. With `nan` the code of all
ones is NaN, as in the OCP's FP8 E4M3: NaN stays NaN, ±Inf becomes the largest value. With `ieee` the last exponent
field means Inf and NaN, as in E5M2 (e5m2), fp16 (e5m10) and bf16 (e8m7): both are kept, and finite values still
saturate. E is from 2 to 8 and M from 1 to 23 (for no fraction, see `log`); e8 needs `ieee`, because float32 holds
nothing larger. Words after eEmM come in this order: `no-denormals`, then `nan` or `ieee`. Steps are powers of two, so
the quotient in float64 is exact and only the integer is rounded. A code is, from its highest bit, the sign, the
exponent field and the fraction. NaN is encoded with sign 0 and a fraction of all ones (`nan`) or only the highest bit
(`ieee`), and a zero of `no-denormals` with fraction 0."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from assay.compress.formats.exact import floor_log2, power
from assay.compress.formats.format import NumberFormat
from assay.compress.formats.layout import Layout
from assay.lazy import torch

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor

Specials = Literal["finite", "nan", "ieee"]


@dataclass(frozen=True)
class Minifloat(NumberFormat):
    exponent: int
    fraction: int
    denormals: bool = True
    specials: Specials = "finite"
    """Which codes are not finite numbers: none, the one of all ones, or those of the last exponent field."""

    form: ClassVar[str] = "minifloat:eEmM[:no-denormals][:nan|:ieee]"
    example: ClassVar[str] = "minifloat:e4m3"

    def __post_init__(self) -> None:
        self._require("exponent width", self.exponent, 2, 8)
        self._require("fraction width", self.fraction, 1, 23)
        if self.specials not in ("finite", "nan", "ieee"):
            raise self._refusal(f"a minifloat's special codes are not '{self.specials}'")
        if self.exponent == 8 and self.specials != "ieee":
            fix = f"write minifloat:e8m{self.fraction}:ieee"
            raise self._refusal("eight exponent bits without infinities reach beyond float32", fix)

    @classmethod
    def parsed(cls, words: Sequence[str]) -> Self:
        sizes = re.fullmatch(r"e(\d+)m(\d+)", words[0]) if words else None
        rest = list(words[1:])
        denormals = rest[:1] != ["no-denormals"]
        rest = rest if denormals else rest[1:]
        if not sizes or (rest and rest not in (["nan"], ["ieee"])):
            raise cls._refusal(f"no such minifloat: '{':'.join(words)}'")
        return cls(int(sizes[1]), int(sizes[2]), denormals, cast(Specials, rest[0] if rest else "finite"))

    @property
    def name(self) -> str:
        return f"minifloat:{self.code}"

    @property
    def code(self) -> str:
        """The name without its first word."""
        marks = ("" if self.denormals else ":no-denormals") + ("" if self.specials == "finite" else f":{self.specials}")
        return f"e{self.exponent}m{self.fraction}{marks}"

    @property
    def width(self) -> int:
        return 1 + self.exponent + self.fraction

    @property
    def layout(self) -> Layout:
        return Layout(self.width)

    @property
    def least(self) -> int:
        """The exponent of the smallest normal number."""
        return 2 - 2 ** (self.exponent - 1)

    @property
    def most(self) -> int:
        """The exponent of the largest number."""
        return 2 ** (self.exponent - 1) - (self.specials == "ieee")

    @property
    def limits(self) -> tuple[float, float]:
        missing = 2 if self.specials == "nan" else 1
        largest = (2 - missing * 2.0**-self.fraction) * 2.0**self.most
        return -largest, largest

    def _values(self, x: Tensor) -> Tensor:
        size, largest = x.abs(), self.limits[1]
        step = power(floor_log2(size).clamp(self.least, self.most) - self.fraction)
        values = ((size / step).round() * step).clamp(max=largest)
        if not self.denormals:
            smallest = 2.0**self.least
            values = torch.where(size < smallest, (size > smallest / 2).double() * smallest, values)
        values = values.copysign(x)
        if self.specials == "ieee":
            values = torch.where(x.isinf(), x, values)
        return torch.where(x.isnan(), 0.0 if self.specials == "finite" else nan, values)

    def _codes(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return self.codes_of(self._values(x)), {}

    def codes_of(self, values: Tensor) -> Tensor:
        """Return the codes of float64 values that the format holds."""
        size = torch.where(values.isfinite(), values.abs(), 0.0)
        exponent = floor_log2(size).clamp(self.least, self.most).long()
        # The fraction of a normal number includes its leading one, which adds one to the field.
        codes = (exponent - self.least << self.fraction) + (size / power(exponent - self.fraction)).long()
        codes = torch.where(values.isinf(), self._last_field << self.fraction, codes)
        codes = codes | values.signbit().long() << self.width - 1
        return torch.where(values.isnan(), self._nan_code, codes)

    def _decoded(self, codes: Tensor, shared: Mapping[str, Tensor]) -> Tensor:
        return self.values_of(codes)

    def values_of(self, codes: Tensor) -> Tensor:
        field, fraction = codes >> self.fraction & self._last_field, codes & 2**self.fraction - 1
        leading = (field > 0).long() << self.fraction
        values = (fraction + leading) * power(field.clamp(min=1) - 1 + self.least - self.fraction)
        if not self.denormals:
            values = torch.where(field == 0, 0.0, values)
        if self.specials == "ieee":
            values = torch.where(field == self._last_field, torch.where(fraction == 0, inf, nan), values)
        elif self.specials == "nan":
            values = torch.where((codes & self._nan_code) == self._nan_code, nan, values)
        return torch.where(codes >> self.width - 1 == 1, -values, values)

    @property
    def _last_field(self) -> int:
        return 2**self.exponent - 1

    @property
    def _nan_code(self) -> int:
        fraction = 2 ** (self.fraction - 1) if self.specials == "ieee" else 2**self.fraction - 1
        return self._last_field << self.fraction | fraction
