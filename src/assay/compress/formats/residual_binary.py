"""Residual-sign binary: `binary:residual`, optionally with `:channel` or `:group=N`, two signs for each element.

The rule: x ≈ a₁ · sign x + a₂ · sign r with r = x − a₁ · sign x, where a₁ is the mean of |x| and a₂ the mean of |r|
over the tensor, the channel or the group (see groups.py), both summed in float64 and rounded to float32 as in
binary.py; the sign of +0 and of −0 is + here. The value is one of ±a₁ ± a₂, rounded to float32, to nearest even, and
saturated at its largest. A group of zeros gives +0. A NaN or ±Inf makes both means NaN, and with them every value of
its group. Each sign costs a bit, each mean 32. The squared error is never more than that of `binary:scaled`, up to
rounding. Two properties of the other formats need not hold here. Quantising twice may change values: the mean of |±a₁ ±
a₂| is a₁ only if as many elements lie above a₁ as below. And if a₂ > a₁ (most of a group is near zero), a small
negative x becomes a₂ − a₁ > 0 and a small positive one a₁ − a₂ < 0; the order of values is kept if a₂ ≤ a₁. A code is
two bits, 1 for minus, the sign of x in the lower one and that of r in the higher one, and 0 throughout a group of NaN;
`first` and `second` have the float32 a₁ and a₂ of each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from assay.compress.formats import groups
from assay.compress.formats.binary import mean, signed
from assay.compress.formats.exact import LARGEST
from assay.compress.formats.format import NumberFormat
from assay.compress.formats.groups import WHOLE, Groups
from assay.compress.formats.layout import Layout
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

    @property
    def layout(self) -> Layout:
        return Layout(2, self.groups, {"first": "float32", "second": "float32"})

    def _values(self, x: Tensor) -> Tensor:
        rows = self.groups.split(x)
        first, rest, second = self._means(rows, self.groups.lengths(x))
        return self.groups.join(total(signed(first, rows), signed(second, rest)), x.shape)

    def _codes(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        rows = self.groups.split(x)
        first, rest, second = self._means(rows, self.groups.lengths(x))
        codes = ((rows < 0).long() | (rest < 0).long() << 1) * first.isfinite()
        return self.groups.join(codes, x.shape), {"first": first.flatten().float(), "second": second.flatten().float()}

    def _decoded(self, codes: Tensor, shared: Mapping[str, Tensor]) -> Tensor:
        rows = self.groups.split(codes)
        first, second = (shared[name].reshape(-1, 1).double() for name in ("first", "second"))
        return self.groups.join(total(signed(first, -(rows & 1)), signed(second, -(rows & 2))), codes.shape)

    def _means(self, rows: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the first means, the residuals r, and the means of |r|; means are columns beside the rows."""
        first = mean(rows.abs(), lengths)
        filled = torch.arange(rows.shape[-1], device=rows.device) < lengths
        rest = torch.where(filled, rows - signed(first, rows), 0.0)
        return first, rest, mean(rest.abs(), lengths)


def total(first: Tensor, second: Tensor) -> Tensor:
    return (first + second).clamp(-LARGEST, LARGEST).float().double() + 0.0
