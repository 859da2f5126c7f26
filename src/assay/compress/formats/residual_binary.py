"""Residual-sign binary: `binary:residual`, with `:channel` or `:group=N` after it, two signs for each element.

The rule: x ≈ a₁ · sign x + a₂ · sign r with r = x − a₁ · sign x, where a₁ is the mean of |x| and a₂ the mean of |r|
over the tensor, the channel or the group (see groups.py), both summed in float64 and rounded to float32 as in
binary.py; the sign of zero, +0 or −0, is + here. The value is one of ±a₁ ± a₂, rounded to float32, to nearest even,
saturated at its largest. A group of zeros gives +0. A NaN or ±Inf makes both means NaN, and with them every value of
its group. Each sign costs a bit, each mean 32. The squared error is never more than that of `binary:scaled`, up to
rounding. Two things that hold for the other formats need not hold here. Quantising twice may change values: the mean
of |±a₁ ± a₂| is a₁ only where as many elements lie above a₁ as below. And where a₂ > a₁ (most of a group is near
zero), a small negative x becomes a₂ − a₁ > 0 and a small positive one a₁ − a₂ < 0; the order of values is kept where
a₂ ≤ a₁."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, ClassVar

from assay.compress.formats import groups
from assay.compress.formats.binary import SCALE_BITS, mean, signed
from assay.compress.formats.exact import LARGEST
from assay.compress.formats.format import NumberFormat
from assay.compress.formats.groups import WHOLE, Groups
from assay.lazy import torch

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor


@dataclass(frozen=True)
class ResidualBinary(NumberFormat):
    groups: Groups = WHOLE

    form: ClassVar[str] = "binary:residual, binary:residual:channel or binary:residual:group=N"
    example: ClassVar[str] = "binary:residual"

    @classmethod
    def parsed(cls, words: Sequence[str]) -> Self:
        shared = groups.parsed(words[1:])
        if words[:1] != ["residual"] or shared is None:
            raise cls._refusal(f"no such residual binary format: '{':'.join(['binary', *words])}'")
        return cls(shared)

    @property
    def name(self) -> str:
        return f"binary:residual{self.groups.suffix}"

    def bits(self, shape: Sequence[int]) -> int:
        return 2 * prod(shape) + 2 * self.groups.count(shape) * SCALE_BITS

    def _values(self, x: Tensor) -> Tensor:
        rows, lengths = self.groups.split(x), self.groups.lengths(x)
        first = signed(mean(rows.abs(), lengths), rows)
        filled = torch.arange(rows.shape[-1], device=x.device) < lengths
        rest = torch.where(filled, rows - first, 0.0)
        second = signed(mean(rest.abs(), lengths), rest)
        values = (first + second).clamp(-LARGEST, LARGEST).float().double()
        return self.groups.join(values + 0.0, x.shape)
