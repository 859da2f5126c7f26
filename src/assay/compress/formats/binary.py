"""Binary: `binary`, one bit for the sign; and `binary:scaled`, `binary:scaled:channel`, `binary:scaled:group=N`.

The rule: `binary` gives −1 for x < 0, else +1, also for +0, −0 and NaN. Its range is −1 … 1; values beyond it, ±Inf
included, saturate. `binary:scaled` gives −a for x < 0, else a, where a is the mean of |x| over the tensor, the channel
or the group (see groups.py). It is summed in float64, rounded to float32, to nearest even, and clamped to the largest
float32. If float64 holds all partial sums, the sum is exact and a is rounded once; otherwise the last bit of a may
depend on the order of summation. A group of zeros gives +0. A NaN or ±Inf makes a NaN, and with it every value of its
group. Quantising twice changes nothing (with scales: in groups of up to 2^29 elements, whose sums are exact). A code is
one bit, 1 for minus, and 0 throughout a group of NaN; `means` has the float32 a of each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import TYPE_CHECKING, ClassVar

from assay.compress.formats import groups
from assay.compress.formats.exact import LARGEST
from assay.compress.formats.format import NumberFormat
from assay.compress.formats.groups import Groups
from assay.compress.formats.layout import Layout
from assay.lazy import torch

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor


@dataclass(frozen=True)
class Binary(NumberFormat):
    groups: Groups | None = None
    """Which elements share a scale; None for ±1."""

    form: ClassVar[str] = "binary, binary:scaled, binary:scaled:channel or binary:scaled:group=N"
    example: ClassVar[str] = "binary:scaled"

    @classmethod
    def parsed(cls, words: Sequence[str]) -> Self:
        if not words:
            return cls()
        shared = groups.parsed(words[1:])
        if words[0] != "scaled" or shared is None:
            raise cls._refusal(f"no such binary format: '{':'.join(['binary', *words])}'")
        return cls(shared)

    @property
    def name(self) -> str:
        return "binary" if self.groups is None else f"binary:scaled{self.groups.suffix}"

    @property
    def layout(self) -> Layout:
        return Layout(1, self.groups, {"means": "float32"}) if self.groups else Layout(1)

    @property
    def limits(self) -> tuple[float, float]:
        return (-inf, inf) if self.groups else (-1.0, 1.0)

    def _values(self, x: Tensor) -> Tensor:
        if self.groups is None:
            return torch.where(x < 0, -1.0, 1.0).to(x.dtype)
        rows = self.groups.split(x)
        return self.groups.join(signed(mean(rows.abs(), self.groups.lengths(x)), rows) + 0.0, x.shape)

    def _codes(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        if self.groups is None:
            return (x < 0).long(), {}
        rows = self.groups.split(x)
        average = mean(rows.abs(), self.groups.lengths(x))
        codes = self.groups.join((rows < 0) & average.isfinite(), x.shape)
        return codes.long(), {"means": average.flatten().float()}

    def _decoded(self, codes: Tensor, shared: Mapping[str, Tensor]) -> Tensor:
        if self.groups is None:
            return 1.0 - 2.0 * codes
        size = shared["means"].reshape(-1, 1)
        return self.groups.join(signed(size, -self.groups.split(codes)) + 0.0, codes.shape)


def signed(size: Tensor, like: Tensor) -> Tensor:
    return torch.where(like < 0, -size, size)


def mean(size: Tensor, lengths: Tensor) -> Tensor:
    """Return the mean of each row, rounded to float32 and saturated; NaN if a value is not finite. Padding is zero."""
    average = (size.sum(-1, keepdim=True) / lengths).clamp(max=LARGEST).float().double()
    return torch.where(size.isfinite().all(-1, keepdim=True), average, nan)
