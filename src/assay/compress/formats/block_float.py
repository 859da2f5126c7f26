"""Block floating point: `bfp:WIDTH:block=N`, integers that share a power of two.

The rule: N neighbours along the last axis (the last block of a row may be short) have one exponent e = ⌊log₂ max|x|⌋,
clamped to −127 … 127 and stored in 8 bits, of which one code is NaN. An element is x / 2^(e − WIDTH + 2) to the
nearest integer, ties to even, saturated to ±(2^(WIDTH−1) − 1), so a block's largest value saturates where it would
round up to 2^(e+1). The value is that integer times 2^(e − WIDTH + 2). There is one zero, +0; subnormal inputs count
in full; a block of zeros has the exponent −127. A NaN or ±Inf makes its whole block NaN. WIDTH, sign included, is from
2 to 24. `mxint8` is `bfp:8:block=32`. Divisors are powers of two: only the rounding to an integer rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, prod
from typing import TYPE_CHECKING, ClassVar

from assay.compress.formats import groups
from assay.compress.formats.exact import floor_log2, power
from assay.compress.formats.format import NumberFormat
from assay.compress.formats.groups import Groups
from assay.lazy import torch

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor

EXPONENT_BITS = 8


@dataclass(frozen=True)
class BlockFloat(NumberFormat):
    width: int
    block: int

    form: ClassVar[str] = "bfp:WIDTH:block=N"
    example: ClassVar[str] = "bfp:8:block=16"

    def __post_init__(self) -> None:
        self._require("width", self.width, 2, 24)
        Groups("group", self.block)

    @classmethod
    def parsed(cls, words: Sequence[str]) -> Self:
        blocks = groups.parsed(words[1:], "block")
        if not words or blocks is None or blocks.kind != "group":
            raise cls._refusal(f"no such block floating point: '{':'.join(['bfp', *words])}'")
        return cls(cls._integer(words[0], "width"), blocks.size)

    @property
    def name(self) -> str:
        return f"bfp:{self.width}:block={self.block}"

    def bits(self, shape: Sequence[int]) -> int:
        return prod(shape) * self.width + Groups("group", self.block).count(shape) * EXPONENT_BITS

    def _values(self, x: Tensor) -> Tensor:
        blocks = Groups("group", self.block)
        rows = blocks.split(x)
        finite = rows.isfinite().all(-1, keepdim=True)
        rows = torch.where(finite, rows, 0.0)
        exponent = floor_log2(rows.abs().amax(-1, keepdim=True)).clamp(-127, 127)
        step = power(exponent - (self.width - 2))
        most = 2 ** (self.width - 1) - 1
        values = (rows / step).round().clamp(-most, most) * step + 0.0
        return blocks.join(torch.where(finite, values, nan), x.shape)
