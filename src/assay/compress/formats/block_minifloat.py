"""Block minifloat: `block-minifloat:eEmM:block=N`, minifloats that share a power of two.

The rule: N neighbours along the last axis (the last block of a row may be short) have one exponent s = ⌊log₂ max|x|⌋ −
t, where t is the exponent of the element format's largest value; s is clamped to −127 … 127 − t and stored in 8 bits,
of which one code is NaN. The value is minifloat(x / 2^s) · 2^s by the rule of minifloat.py: nearest, ties to even,
saturated, zero with x's sign, `no-denormals` and the reserved codes `nan` and `ieee` as there. A block of zeros has s
= −127. A NaN or ±Inf makes its whole block NaN, so reserved codes only make the largest value smaller. 2^(E−1) − 1 + M
is at most 23 and E at most 5, so that float32 holds every value. For the MX formats of the same elements see mx.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, prod
from typing import TYPE_CHECKING, ClassVar

from assay.compress.formats import groups
from assay.compress.formats.exact import floor_log2, power
from assay.compress.formats.format import NumberFormat
from assay.compress.formats.groups import Groups
from assay.compress.formats.minifloat import Minifloat
from assay.errors import UsageError
from assay.lazy import torch

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor

EXPONENT_BITS = 8


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

    def bits(self, shape: Sequence[int]) -> int:
        return prod(shape) * self.element.width + Groups("group", self.block).count(shape) * EXPONENT_BITS

    def _values(self, x: Tensor) -> Tensor:
        blocks = Groups("group", self.block)
        rows = blocks.split(x)
        finite = rows.isfinite().all(-1, keepdim=True)
        rows = torch.where(finite, rows, 0.0)
        top = self.element.most
        scale = power((floor_log2(rows.abs().amax(-1, keepdim=True)) - top).clamp(-127, 127 - top))
        # A float64 beyond float32 may overflow in the quotient; it saturates either way.
        ratio = (rows / scale).clamp(*self.element.limits)
        return blocks.join(torch.where(finite, self.element.quantized(ratio) * scale, nan), x.shape)
