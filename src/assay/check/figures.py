"""The figures that summarise the errors of a group of elements, in units of the output's format."""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.check.oracle import FEW, ulp
from assay.dtype import DType
from assay.lazy import torch

Figures = dict[str, float]
"""RMS, 99.5th percentile and maximum of |error|; in formats narrower than float32 also the bias."""
SLACK = {"rms": 2.0, "p995": 2.0, "max": 3.0, "bias": 2.0}
"""The allowed multiple of PyTorch's figure. Two is one bit: another order of operations costs that much, another
precision costs more. A maximum varies by itself from one evaluation to another."""
ROUNDED = 1.0
"""The largest error of PyTorch, in units, at which a bias is judged: only the error of the last rounding is left there.
Larger errors come from sums; they are few or depend on one another, and their mean is no bias."""
ENOUGH = 400
"""The least number of elements for a reliable percentile. In smaller bins the prior counts too."""
NEEDED = {"rms": FEW, "p995": ENOUGH, "max": 1, "bias": FEW}
"""Elements that each figure needs to be reliable."""
NAMES = {
    "rms": "root mean square error",
    "p995": "99.5th percentile of the errors",
    "max": "largest error",
    "bias": "mean error in one direction",
}
"""What a reason calls them."""
_TIE = 1 - 1 / 32
"""Twice the distance to the nearest number of the format, in ulps, above which either neighbour may be chosen."""


@dataclass(frozen=True)
class Errors:
    """The errors of the bin that comes closest to its tolerance, or exceeds it most."""

    output: str
    kernel: dict[str, float]
    torch: dict[str, float]
    share: float
    """The largest of kernel/tolerance over the figures; above 1 is a failure."""
    ratio: float
    """Kernel over PyTorch in that figure; 1 if both are exact."""
    where: str
    """That figure and the results it is of, in words."""
    figure: str = "max"
    admitted: bool = False
    """Whether the error is within the tolerance only because another order in float32 loses as much on these values."""


def sides(exact: torch.Tensor, rounded: torch.Tensor, unit: torch.Tensor, number: DType) -> torch.Tensor | None:
    """Return the sign with which the error of each element counts towards the bias. It is 0 for an element that is
    nearly halfway between two numbers of the format, where both are right, and for one whose unit of error is more than
    twice the format's spacing: that error comes from the arithmetic and may have one sign, as where subnormal numbers
    are flushed. Return None in float32 and wider formats, where the errors of the arithmetic are always as large as
    that of the last rounding."""
    if number.itemsize >= 4 or not number.is_float:
        return None
    spacing = ulp(rounded, number)
    uncounted = ((rounded - exact).abs().mul_(2) > spacing * _TIE) | (unit > 2 * spacing)
    return torch.where(exact < 0, -1.0, 1.0).double().masked_fill_(uncounted, 0.0).flatten()


def figures(error: torch.Tensor, side: torch.Tensor | None) -> Figures:
    """Return the figures of signed errors, with the bias if `side` is given."""
    size, count = error.abs(), error.numel()
    rank = min(count, math.ceil(0.995 * count))
    seen = {
        "rms": float((error * error).mean().sqrt()),
        "p995": float(size.kthvalue(rank).values),
        "max": float(size.max()),
    }
    return seen if side is None else seen | {"bias": _bias(error, side)}


def _bias(error: torch.Tensor, side: torch.Tensor) -> float:
    """Return the mean error away from zero or upwards, whichever is larger. Rounding to nearest has none; rounding
    towards zero, away from it, up or down has half a unit. Return 0 if the elements are too few to tell."""
    counted = side.abs()
    count = float(counted.sum())
    return max(abs(float(error @ side)), abs(float(error @ counted))) / count if count >= FEW else 0.0


def joined(seen: Figures, prior: dict[int, Figures], group: int, count: int) -> Figures:
    """Return the measured figures; with too few elements, the larger of those and the prior's nearest bin. A bias is
    only measured on enough elements."""
    if count >= ENOUGH or not prior:
        return seen
    near = prior[min(prior, key=lambda g: abs(g - group))]
    return {k: v if k == "bias" else max(v, near[k]) for k, v in seen.items()}


def of_results(low: float, high: float) -> str:
    """Return in words which results a figure is of, given the range of their absolute values."""
    least, most = f"{low:.3g}", f"{high:.3g}"
    between = f"around {most}" if least == most else f"between {least} and {most}"
    return f"of results {between} in absolute value"


def distinct(values: torch.Tensor) -> int:
    """Return the number of independent errors: if the values are few and repeat, so do their errors."""
    some = values[:: max(1, values.numel() // 1024)]
    different = some.unique().numel()
    return values.numel() if 2 * different > some.numel() else different
