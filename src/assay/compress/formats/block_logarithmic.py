"""Block logarithmic: `block-log:WIDTH:block=N`, powers of two whose largest exponent is the block's.

The rule: N neighbours along the last axis (the last block of a row may be short) have one exponent e, log₂ max|x|
rounded to the nearest integer (√2 · 2^k is the boundary between k and k + 1; there are no ties), clamped to −127 … 127
and stored in 8 bits, of which one code is NaN. The elements are `log:WIDTH:e=…` with that largest exponent, by the rule
of logarithmic.py: one of the 2^(WIDTH−1) − 1 powers 2^e, 2^(e−1), …, or zero with x's sign. A block of zeros has the
smallest exponent. A NaN or ±Inf makes its whole block NaN. WIDTH, sign included, is from 2 to 8; from 6 up, the
smallest e is 2^(WIDTH−1) − 151, so that the smallest power is 2^−149 and float32 holds it. Codes are those of
logarithmic.py, 0 in a block of NaN; `exponents` has a byte for each block, e + 127, or 255 for NaN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, ClassVar

from assay.compress.formats import block_exponent, groups
from assay.compress.formats.exact import round_log2
from assay.compress.formats.format import NumberFormat
from assay.compress.formats.groups import Groups
from assay.compress.formats.layout import Layout
from assay.compress.formats.logarithmic import ordinals, powers, signed_code, sizes
from assay.lazy import torch

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor


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

    @property
    def layout(self) -> Layout:
        return Layout(self.width, Groups("group", self.block), {"exponents": "uint8"})

    def _values(self, x: Tensor) -> Tensor:
        ordinal, top, finite = self._rounded(x)
        values = torch.where(finite, sizes(ordinal, top, powers(self.width)), nan)
        return self.layout.groups.join(values, x.shape).copysign(x)

    def _codes(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        ordinal, top, finite = self._rounded(x)
        negative = self.layout.groups.split(x).signbit() & finite
        codes = self.layout.groups.join(signed_code(ordinal, negative, self.width), x.shape)
        return codes, {"exponents": block_exponent.stored(top, finite)}

    def _decoded(self, codes: Tensor, shared: Mapping[str, Tensor]) -> Tensor:
        rows, count = self.layout.groups.split(codes), powers(self.width)
        values = sizes(rows & count, 0, count) * block_exponent.scale(shared["exponents"])
        return self.layout.groups.join(torch.where(rows > count, -values, values), codes.shape)

    def _rounded(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return rows of the powers' numbers, and two columns: largest exponents and finiteness."""
        rows, count = self.layout.groups.split(x), powers(self.width)
        finite = rows.isfinite().all(-1, keepdim=True)
        exponent = round_log2(torch.where(finite, rows.abs(), 0.0))
        top = exponent.amax(-1, keepdim=True).clamp(max(-127, count - 150), 127)
        return ordinals(exponent, top, count), top, finite
