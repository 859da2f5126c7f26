"""Block floating point: `bfp:WIDTH:block=N`, integers that share a power of two.

The rule: N neighbours along the last axis (the last block of a row may be short) have one exponent e = ⌊log₂ max|x|⌋,
clamped to −127 … 127 and stored in 8 bits, of which one code is NaN. An element is x / 2^(e − WIDTH + 2) rounded to the
nearest integer, ties to even, and saturated to ±(2^(WIDTH−1) − 1), so a block's largest value saturates if it would
round up to 2^(e+1). The value is that integer times 2^(e − WIDTH + 2). There is one zero, +0. Subnormal inputs are not
flushed. A block of zeros has the exponent −127. A NaN or ±Inf makes its whole block NaN. WIDTH, sign included, is from
2 to 24. The code is that integer in two's complement, 0 in a block of NaN; `exponents` has a byte for each block, e +
127, or 255 for NaN. `mxint8` is `bfp:8:block=32`. Divisors are powers of two, so only the integer is rounded."""

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
from assay.compress.formats.packing import from_twos_complement, twos_complement
from assay.lazy import torch

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor


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

    @property
    def layout(self) -> Layout:
        return Layout(self.width, Groups("group", self.block), {"exponents": "uint8"})

    def _values(self, x: Tensor) -> Tensor:
        steps, exponent, finite = self._rounded(x)
        values = steps * power(exponent - (self.width - 2)) + 0.0
        return self.layout.groups.join(torch.where(finite, values, nan), x.shape)

    def _codes(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        steps, exponent, finite = self._rounded(x)
        codes = twos_complement(self.layout.groups.join(steps, x.shape), self.width)
        return codes, {"exponents": block_exponent.stored(exponent, finite)}

    def _decoded(self, codes: Tensor, shared: Mapping[str, Tensor]) -> Tensor:
        steps = self.layout.groups.split(from_twos_complement(codes, self.width))
        values = steps * (block_exponent.scale(shared["exponents"]) * 2.0 ** (2 - self.width))
        return self.layout.groups.join(values, codes.shape)

    def _rounded(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return rows of integers, zeros if the block is not finite, and two columns: exponents and finiteness."""
        rows = self.layout.groups.split(x)
        finite = rows.isfinite().all(-1, keepdim=True)
        rows = torch.where(finite, rows, 0.0)
        exponent = floor_log2(rows.abs().amax(-1, keepdim=True)).clamp(-127, 127)
        most = 2 ** (self.width - 1) - 1
        return (rows / power(exponent - (self.width - 2))).round().clamp(-most, most), exponent, finite
