"""Errors of a model's or a layer's outputs, in units of what one rounding costs, held against plain PyTorch's own.

The unit is the format's eps at the root mean square of the row (the last axis) that an element stands in: an element
that happens to be near zero is judged by the size of its neighbours, from which its rounding error comes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

SLACK = 2.0
"""One bit more than PyTorch loses: another order of operations costs that much, another precision costs more."""
EXTREME = 2 * SLACK
"""For the worst of many elements, which varies by itself from one order of operations to the next."""


@dataclass(frozen=True)
class Errors:
    rms: float
    median: float
    worst: float
    astray: int = 0
    """Elements that are finite where the truth is not, or the other way."""

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


def errors(got: torch.Tensor, exact: torch.Tensor) -> Errors:
    """Of `got` against the truth in float64, in units of `got`'s own format."""
    import torch

    exact = exact.double()
    finite = exact.isfinite()
    astray = int((got.isfinite() != finite).sum())
    clean = torch.where(finite, exact, torch.zeros_like(exact))
    rows = clean.square().mean(-1, keepdim=True).sqrt() if clean.dim() else clean.abs()
    # A row of zeros has no size of its own; then it is that of the whole.
    whole = clean.square().mean().sqrt().clamp(min=torch.finfo(got.dtype).tiny)
    unit = torch.finfo(got.dtype).eps * torch.where(rows > 0, rows, whole)
    off = ((got.double() - exact).abs() / unit)[finite & got.isfinite()]
    if not off.numel():
        return Errors(0.0, 0.0, 0.0, astray)
    return Errors(float(off.square().mean().sqrt()), float(off.median()), float(off.max()), astray)


def share(mine: Errors, plain: Errors, floor: float = 1.0) -> float:
    """Of the limit; above 1 it is wrong. The limit is SLACK times plain PyTorch's error in the same format, and never
    less than `floor` units."""
    if mine.astray > plain.astray:
        return float(10**9)
    return max(
        mine.rms / (SLACK * max(plain.rms, floor)),
        mine.worst / (EXTREME * max(plain.worst, floor)),
    )
