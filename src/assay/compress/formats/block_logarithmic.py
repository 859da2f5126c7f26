"""Block logarithmic: `block-log:WIDTH:block=N`, powers of two whose largest exponent is the block's.

The rule: N neighbours along the last axis (the last block of a row may be short) have one exponent e, log₂ max|x| to
the nearest integer (√2 · 2^k divides k from k + 1; there are no ties), clamped to −127 … 127 and stored in 8 bits, of
which one code is NaN. The elements are `log:WIDTH:e=…` with that largest exponent, by the rule of logarithmic.py: 2^e,
2^(e−1), … , 2^(WIDTH−1) − 1 powers of them, or zero with x's sign. A block of zeros has the smallest exponent. A NaN
or ±Inf makes its whole block NaN. WIDTH, sign included, is from 2 to 8; from 6 up, the smallest e is 2^(WIDTH−1) −
151, so that the smallest power is 2^−149 and float32 holds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, prod
from typing import TYPE_CHECKING, ClassVar

from assay.compress.formats import groups
from assay.compress.formats.exact import round_log2
from assay.compress.formats.format import NumberFormat
from assay.compress.formats.groups import Groups
from assay.compress.formats.logarithmic import power_or_zero, powers
from assay.lazy import torch

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor

EXPONENT_BITS = 8


@dataclass(frozen=True)
class BlockLogarithmic(NumberFormat):
    width: int
    block: int

    form: ClassVar[str] = "block-log:WIDTH:block=N"
    example: ClassVar[str] = "block-log:4:block=16"

    def __post_init__(self) -> None:
        self._require("width", self.width, 2, 8)
        Groups("group", self.block)

    @classmethod
    def parsed(cls, words: Sequence[str]) -> Self:
        blocks = groups.parsed(words[1:], "block")
        if not words or blocks is None or blocks.kind != "group":
            raise cls._refusal(f"no such block logarithmic format: '{':'.join(['block-log', *words])}'")
        return cls(cls._integer(words[0], "width"), blocks.size)

    @property
    def name(self) -> str:
        return f"block-log:{self.width}:block={self.block}"

    def bits(self, shape: Sequence[int]) -> int:
        return prod(shape) * self.width + Groups("group", self.block).count(shape) * EXPONENT_BITS

    def _values(self, x: Tensor) -> Tensor:
        blocks, count = Groups("group", self.block), powers(self.width)
        rows = blocks.split(x)
        finite = rows.isfinite().all(-1, keepdim=True)
        exponent = round_log2(torch.where(finite, rows.abs(), 0.0))
        top = exponent.amax(-1, keepdim=True).clamp(max(-127, count - 150), 127)
        values = power_or_zero(exponent, top, count).copysign(rows)
        return blocks.join(torch.where(finite, values, nan), x.shape)
