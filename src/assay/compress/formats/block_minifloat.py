"""Block minifloat: `block-minifloat:eEmM:block=N`, minifloats that share a power of two.

The rule: N neighbours along the last axis (the last block of a row may be short) have one exponent s = ⌊log₂ max|x|⌋ −
t, where t is the exponent of the element format's largest value; s is clamped to −127 … 127 − t and stored in 8 bits,
of which one code is NaN. The value is minifloat(x / 2^s) · 2^s by the rule of minifloat.py: nearest, ties to even,
saturated, zero with x's sign; `no-denormals` and the reserved codes `nan` and `ieee` mean the same as there. A block of
zeros has s = −127. A NaN or ±Inf makes its whole block NaN, so reserved codes only lower the largest value. 2^(E−1) − 1
+ M is at most 23 and E at most 5, so that float32 holds every value. Codes are those of minifloat.py, 0 in a block of
NaN; `exponents` has a byte for each block, s + 127, or 255 for NaN. For the MX formats of the same elements see mx.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, ClassVar

from assay.compress.formats import block_exponent, groups
from assay.compress.formats.exact import floor_log2, power
from assay.compress.formats.format import NumberFormat
from assay.compress.formats.groups import Groups
from assay.compress.formats.layout import Layout
from assay.compress.formats.minifloat import Minifloat
from assay.errors import UsageError
from assay.lazy import torch

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor


@dataclass(frozen=True)
class BlockMinifloat(NumberFormat):
    element: Minifloat
    block: int

    form: ClassVar[str] = "block-minifloat:eEmM[:no-denormals][:nan|:ieee]:block=N"
    example: ClassVar[str] = "block-minifloat:e2m1:block=32"

    def __post_init__(self) -> None:
        self._require("exponent width", self.element.exponent, 2, 5)
        self._require("fraction width", self.element.fraction, 1, 22 + self.element.least)
        Groups("group", self.block)

    @classmethod
    def parsed(cls, words: Sequence[str]) -> Self:
        blocks = groups.parsed(words[-1:], "block")
        if blocks is None or blocks.kind != "group":
            raise cls._refusal(f"no such block minifloat: '{':'.join(words)}'")
        try:
            element = Minifloat.parsed(words[:-1])
        except UsageError as problem:
            raise cls._refusal(problem.what) from None
        return cls(element, blocks.size)

    @property
    def name(self) -> str:
        return f"block-minifloat:{self.element.code}:block={self.block}"

    @property
    def layout(self) -> Layout:
        return Layout(self.element.width, Groups("group", self.block), {"exponents": "uint8"})

    def _values(self, x: Tensor) -> Tensor:
        values, exponent, finite = self._rounded(x)
        return self.layout.groups.join(torch.where(finite, values * power(exponent), nan), x.shape)

    def _codes(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        values, exponent, finite = self._rounded(x)
        codes = self.layout.groups.join(self.element.codes_of(values), x.shape)
        return codes, {"exponents": block_exponent.stored(exponent, finite)}

    def _decoded(self, codes: Tensor, shared: Mapping[str, Tensor]) -> Tensor:
        values = self.element.values_of(self.layout.groups.split(codes))
        return self.layout.groups.join(values * block_exponent.scale(shared["exponents"]), codes.shape)

    def _rounded(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return rows of elements, zeros if the block is not finite, and two columns: exponents and finiteness."""
        rows = self.layout.groups.split(x)
        finite = rows.isfinite().all(-1, keepdim=True)
        rows = torch.where(finite, rows, 0.0)
        top = self.element.most
        exponent = (floor_log2(rows.abs().amax(-1, keepdim=True)) - top).clamp(-127, 127 - top)
        # The quotient of a float64 beyond float32's range may overflow; it saturates either way.
        ratio = (rows / power(exponent)).clamp(*self.element.limits)
        return self.element.quantized(ratio), exponent, finite
