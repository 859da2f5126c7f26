"""Outputs whose elements each have exactly one right value: integers, and results that are only moved."""

from __future__ import annotations

import math
from collections.abc import Callable

from assay.check.figures import Errors, figures
from assay.dtype import DType, dtype
from assay.lazy import torch


class OneRightValue:
    """An output whose elements each have exactly one right value, but for integers that a rounding decides."""

    def __init__(
        self,
        rounded: torch.Tensor,
        unit: torch.Tensor,
        plain: torch.Tensor,
        signed: bool,
        between: Callable[[], tuple[torch.Tensor, torch.Tensor] | None],
    ) -> None:
        self.rounded, self.unit, self.signed, self._between = rounded, unit, signed, between
        off = self._off(plain)
        self.torch, self.torch_wrong = figures(off, None), int(off.count_nonzero())

    def compare(self, name: str, got: torch.Tensor, admitted: bool = False) -> tuple[Errors, int]:
        """Return the errors and the index of the worst element. One value is right, whatever other evaluations lose."""
        off = self._off(got)
        wrong, kernel = int(off.count_nonzero()), figures(off, None)
        share = max(2.0, 2 * kernel["max"]) if wrong else 0.0  # the nearest other value is half a unit away
        plain_max = self.torch["max"]
        ratio = kernel["max"] / plain_max if plain_max else 1.0 if not wrong else math.inf
        where = f"the largest of {wrong} differences" if wrong else "every element is the right one"
        return Errors(name, kernel, self.torch, share, ratio, where), int(off.argmax())

    def explain(self, errors: Errors, value: torch.Tensor, place: int) -> str:
        """Return one wrong element with its right value, and how many elements are wrong."""
        kind = dtype(value.dtype)
        seen = f"`{errors.output}`{place_in(place, value)} is {shown(numbers(value).flatten()[place], kind)}"
        low, high = (shown(v.flatten()[place], kind) for v in self._between() or (self.rounded, self.rounded))
        right = f"must be {low}" if low == high else f"must be from {low} to {high}"
        if value.numel() > 1:
            right += f"; {int(self._off(numbers(value)).count_nonzero())} of {value.numel()} elements are wrong"
        if self.torch_wrong:
            right += f"; plain PyTorch's result is wrong too, in {self.torch_wrong}"
        return f"{seen}, {right}"

    def _off(self, got: torch.Tensor) -> torch.Tensor:
        """Return the distance from the right value in units: 0 only if both are the same number or both are NaN."""
        same = got == self.rounded
        if self.signed:
            same &= got.signbit() == self.rounded.signbit()
        same |= got.isnan() & self.rounded.isnan()
        if not bool(same.all()) and (between := self._between()) is not None:
            same |= (got >= between[0]) & (got <= between[1])
        away = ((got - self.rounded).abs() / self.unit).nan_to_num(nan=1.0, posinf=1.0).clamp(min=0.5)
        return away.masked_fill(same, 0.0).flatten()


def numbers(value: torch.Tensor) -> torch.Tensor:
    """Return the values as float64. A boolean is read as its byte, which must be 0 or 1."""
    return value.view(torch.uint8).double() if value.dtype == torch.bool else value.double()


def place_in(flat: int, like: torch.Tensor) -> str:
    """Return the index of an element as text, given its index in the flattened tensor."""
    place = []
    for size in reversed(like.shape):
        place.append(flat % size)
        flat //= size
    return str(list(reversed(place))) if place else ""


def shown(value: torch.Tensor, number: DType) -> str:
    """Return one value as text: an integer with all its digits."""
    return f"{float(value):.9g}" if number.is_float or not value.isfinite() else str(int(value))
