"""Integers with a scale: `int:WIDTH`, `int:WIDTH:channel` or `int:WIDTH:group=N`, code times scale.

The rule: a tensor, a channel or a group (see groups.py) has one scale, a bfloat16 up to 8 bits and a float32 from 9:
max|x| / q with q = 2^(WIDTH−1) − 1, rounded to nearest, ties to even, but at least 2^−126 and at most the largest scale
whose product with q is within float32's range. A code is x / scale rounded to the nearest integer, ties to even, and
saturated to −q … q; −q − 1 is never used. The value is code · scale, rounded once to the tensor's dtype, to nearest
even. There is one zero, +0. A group of zeros has the scale 2^−126. A NaN or ±Inf makes the scale NaN, and with it every
value of its group. WIDTH is from 2 (−scale, 0, scale) to 32. Codes and scales are found by comparison with exact
products, so float64 inputs, too, are rounded once. A code is stored in two's complement, 0 throughout a group of NaN;
`scales` has the scale of each group.

Up to 8 bits float32 holds every value, because the scale has 8 significant bits. Up to 24 bits the scale is so close to
the quotient that the largest element has the code ±q unless the scale is the smallest one; above, its value may be off
by 2^−24 of it. Quantising twice changes nothing up to 24 bits, because the values give the same scale again and differ
by less than half a scale from their products with it; above, it may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, ClassVar

from assay.compress.formats import groups
from assay.compress.formats.exact import LARGEST, floor_log2, nearest, power
from assay.compress.formats.format import NumberFormat
from assay.compress.formats.groups import WHOLE, Groups
from assay.compress.formats.layout import Layout
from assay.compress.formats.packing import from_twos_complement, twos_complement
from assay.lazy import torch

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor

NARROW = 8
"""Largest width with bfloat16 scales; above it they are float32."""
SMALLEST = -126
"""Exponent of the smallest normal number of both dtypes."""


@dataclass(frozen=True)
class Integer(NumberFormat):
    width: int
    groups: Groups = WHOLE

    form: ClassVar[str] = "int:WIDTH, int:WIDTH:channel or int:WIDTH:group=N"
    example: ClassVar[str] = "int:4:group=128"

    def __post_init__(self) -> None:
        self._require("width", self.width, 2, 32)

    @classmethod
    def parsed(cls, words: Sequence[str]) -> Self:
        shared = groups.parsed(words[1:])
        if not words or shared is None:
            raise cls._refusal(f"no such integer format: '{':'.join(['int', *words])}'")
        return cls(cls._integer(words[0], "width"), shared)

    @property
    def name(self) -> str:
        return f"int:{self.width}{self.groups.suffix}"

    @property
    def layout(self) -> Layout:
        return Layout(self.width, self.groups, {"scales": "bfloat16" if self.width <= NARROW else "float32"})

    def _quantized(self, x: Tensor) -> Tensor:
        return self._values(x) if x.dtype == torch.float64 else self._divided(x)

    def _divided(self, x: Tensor) -> Tensor:
        """Quantise float32 values by rounding quotients. This gives the same as comparing with exact products, because
        a rounded quotient lies on a tie k + ½ only if the exact one is k + ½, or if that makes no difference.

        Narrow codes, in float32: scale · (k + ½) has at most 16 significant bits. If x differs from it, then by at
        least 2^−24 of it, and so does the quotient from k + ½, by more than half the gap between float32 values there.
        Wide codes, in float64: let 2^a be the value of the scale's last bit; then the scale is below 2^(a+24). Either x
        is a multiple of 2^(a−1), as scale · (k + ½) is, or its quotient is at most ½ − 2^−25. If the two differ, their
        quotients differ by more than 2^−25, half the gap between float64 values below 2^29; products are exact there,
        too. From 2^29 up, a product within two scales of x is x in float32, and q · scale is 2^(WIDTH−1) · scale."""
        dtype = torch.float32 if self.width <= NARROW else torch.float64
        rows = self.groups.split(x).to(dtype)
        scale = self._scale(rows.abs().amax(-1, keepdim=True).double()).to(dtype)
        codes = (rows / scale).round_().clamp_(-self._most, self._most)
        return self.groups.join(codes.mul_(scale).add_(0.0), x.shape).float()  # −0 + 0 is +0

    def _values(self, x: Tensor) -> Tensor:
        codes, scale = self._rounded(x)
        return self.groups.join(codes * scale, x.shape)

    def _codes(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        codes, scale = self._rounded(x)
        stored = torch.bfloat16 if self.width <= NARROW else torch.float32
        return twos_complement(self.groups.join(codes, x.shape), self.width), {"scales": scale.flatten().to(stored)}

    def _decoded(self, codes: Tensor, shared: Mapping[str, Tensor]) -> Tensor:
        rows = self.groups.split(from_twos_complement(codes, self.width)).double()
        return self.groups.join(rows * shared["scales"].reshape(-1, 1).double(), codes.shape)

    def _rounded(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return rows of codes (zero is +0) and a column of scales. If a group is not finite: codes 0, scale NaN."""
        rows = self.groups.split(x)
        scale = self._scale(rows.abs().amax(-1, keepdim=True))
        codes = nearest(rows.abs(), scale).clamp(max=self._most).copysign(rows)
        return torch.where(scale.isnan(), 0.0, codes + 0.0), scale

    def _scale(self, largest: Tensor) -> Tensor:
        """Return the scales, in float64, of groups with these largest absolute values."""
        significant = 8 if self.width <= NARROW else 24
        unit = power(floor_log2(largest / self._most).clamp(SMALLEST, 127) - (significant - 1))
        # If the ratio was rounded up to the next power of two, the nearest scale is that power in any case.
        scale = (nearest(largest, self._most * unit) * unit).clamp(2.0**SMALLEST, self._largest_scale(significant))
        return torch.where(largest.isfinite(), scale, nan)

    @property
    def _most(self) -> int:
        return 2 ** (self.width - 1) - 1

    def _largest_scale(self, significant: int) -> float:
        quotient = int(LARGEST) // self._most
        spare = quotient.bit_length() - significant
        return float(quotient >> spare << spare)
