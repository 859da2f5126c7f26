"""The verdict on numbers: errors in units the format allows, held against plain PyTorch's own on the same inputs.

The unit of error is one ulp at the larger of |oracle| and the scale at which the op's arithmetic rounds. For 16-bit
outputs that scale counts in float32, where their arithmetic is done, so that a result small against its terms is still
judged. Inside bins of |oracle|, a kernel's RMS, 99.5th percentile and maximum may each be SLACK times PyTorch's, and
need not be better than a careful float32 evaluation, rounded once: its bound `Op.lost` limits the maximum. Errors that
are independent do not all reach their bounds, so of the roundings of single elements the percentile may show a half
and the RMS a quarter; the error of a sum is shared by all that is computed from it, and counts in full. A handful of
elements says little about PyTorch's error, so in small bins it is at least what it shows on a fixed larger sample of
the op (`Prior`). Where there is one right answer, as for integers and for ops that move data, nothing else passes,
down to the sign of zero."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.check import rounding
from assay.dtype import DType, dtype
from assay.inputs import widened
from assay.op import Op
from assay.workload import Workload

if TYPE_CHECKING:
    import torch

SLACK = {"rms": 2.0, "p995": 2.0, "max": 3.0}
"""One bit more than PyTorch loses: another order of operations costs that much, another precision costs more. A
maximum varies by itself from one evaluation to another."""
SHARE = {"rms": (0.5, 1 / 4), "p995": (1.0, 1 / 2), "max": (0.0, 1.0)}
"""Units, and the share of the bound on what a careful evaluation loses in single elements: at most the bound."""
SHARED = {"rms": 0.6, "p995": 1.0, "max": 1.0}
"""Of the bound on what it loses in sums."""
ONCE = {"rms": 0.5, "p995": 1.0, "max": 1.0}
"""Units that a result rounded once may be off: half a unit, and as much again for ties that fall the other way."""
_FEW, _ENOUGH = 64, 400
"""Bins with fewer elements than the first are joined with their neighbour; with fewer than the second, a percentile
means little and the prior counts too."""

_NEEDED = {"rms": _FEW, "p995": _ENOUGH, "max": 1}
"""Elements a figure needs to mean something."""

Figures = dict[str, float]
Prior = dict[str, dict[int, Figures]]
"""PyTorch's own errors on a fixed sample: output → bin of |oracle| → figures."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, and the detector that saw it."""

    detector: str
    what: str


@dataclass(frozen=True)
class Errors:
    """The bin that comes closest to its limit, or exceeds it most."""

    output: str
    kernel: dict[str, float]
    torch: dict[str, float]
    share: float
    """Largest of kernel/limit over the three figures; above 1 is a failure."""
    ratio: float
    """Kernel over PyTorch in that figure; 1 where PyTorch is exact and so is the kernel."""
    where: str


@dataclass(frozen=True)
class Judgement:
    finding: Finding | None
    errors: tuple[Errors, ...]
    controls: dict[str, bool]
    """Were zeros, a constant and the right values shuffled rejected? Only those that are wrong here."""


@dataclass(frozen=True)
class Oracle:
    """The reference in float64, and what float32 arithmetic may lose: so many ulps at each output's magnitude."""

    exact: dict[str, torch.Tensor]
    magnitude: dict[str, torch.Tensor | None]
    lost: float = 1.0
    """In all, and of that in sums."""
    in_sums: float = 0.0
    spread: dict[str, torch.Tensor] | None = None
    """Standard deviation of each element under random rounding (assay.check.rounding), for an op without a declared
    magnitude."""

    flushed: dict[str, torch.Tensor] | None = None
    """How far each element moves when inputs below float32's smallest normal number are taken for zero, as CuPy's
    kernels and approximate functions take them."""

    def rounded(self, name: str, number: DType) -> torch.Tensor:
        """The right answer in the output's format, as float64."""
        return number.rounded(self.exact[name].double())

    def unit(self, name: str, rounded: torch.Tensor, number: DType) -> torch.Tensor:
        """One ulp of the output's format at max(|oracle|, magnitude). A 16-bit result is off by half an ulp of its
        own and by `lost` ulps of float32: together at most the larger of twice each. Integers are counted."""
        import torch

        if not number.is_float:
            return torch.ones_like(rounded)
        finite = torch.where(rounded.isfinite(), rounded, torch.zeros_like(rounded))
        unit, magnitude = ulp(finite, number).clamp(min=_SMALLEST), self.magnitude[name]
        if self.flushed is not None:
            unit = torch.maximum(unit, self.flushed[name].nan_to_num(0.0, 0.0, 0.0))
        if self.spread is not None:
            wide = self.spread[name] * (_DEVIATIONS if number.itemsize >= 4 else 2 * self.lost * _DEVIATIONS)
            return torch.maximum(unit, torch.where(wide.isfinite(), wide, torch.zeros_like(wide)))
        if magnitude is None:
            return unit
        scale = magnitude.expand_as(rounded)
        scale = torch.where(scale.isfinite(), scale, torch.zeros_like(scale))
        wide = ulp(scale, number) if number.itemsize >= 4 else 2 * self.lost * ulp(scale, dtype("fp32"))
        return torch.maximum(unit, wide)

    def floor(self, number: DType) -> Figures:
        """Units a kernel need not be better than."""
        if number.itemsize < 4:
            return ONCE
        single = self.lost - self.in_sums
        own = {k: max(ONCE[k], min(single, units + share * single)) for k, (units, share) in SHARE.items()}
        return {k: own[k] + SHARED[k] * self.in_sums for k in own}

    def only(self, number: DType) -> bool:
        """Is there one right answer: an integer, or a result that is exact but for its last rounding?"""
        return not number.is_float or self.lost == 0


_SMALLEST = 2.0**-123
"""Arithmetic in float32 may flush what is smaller than its smallest normal number, 2⁻¹²⁶, as GPUs do in approximate
functions and CuPy does everywhere; a few such terms make this. An op that moves data may not."""
_DEVIATIONS = 4.0
"""Standard deviations in a unit: honest evaluations stay within two units, eight of them."""


def oracle(op: Op, workload: Workload, inputs: dict[str, torch.Tensor]) -> Oracle:
    """Evaluate the reference in float64 on a private copy of the inputs."""
    wide = [widened(inputs[n]) if n in inputs else None for n in op.inputs]
    attributes = dict(workload.attributes)
    exact = _per_output(op, op.reference(*wide, **attributes))
    scale: dict[str, torch.Tensor | None] = dict.fromkeys(op.outputs)
    if op.magnitude is not None:
        scale = dict(_per_output(op, op.magnitude(*wide, **attributes)))
    flushed = None
    if workload.values == "subnormal":
        normal = [_normal(v) for v in wide]
        moved = _per_output(op, op.reference(*normal, **attributes))
        flushed = {n: (moved[n].double() - v.double()).abs() for n, v in exact.items()}
    if op.magnitude is not None or op.roundings is not None:
        return Oracle(exact, scale, op.lost(workload), op.lost_in_sums(workload), flushed=flushed)
    whole = all(hasattr(v, "numel") for v in exact.values())  # what is no tensor is refused by whoever asked
    noise = rounding.spread(op, workload, inputs) if whole else None
    if noise is None:
        return Oracle(exact, scale, 0.0)
    return Oracle(exact, scale, 2.0, 1.0, {n: _smooth(v, exact[n].double()) for n, v in noise.items()}, flushed)


def _normal(value: torch.Tensor | None) -> torch.Tensor | None:
    """Zero where float32 would be subnormal."""
    if value is None or not value.is_floating_point():
        return value
    return value.masked_fill(value.abs() < 2.0**-126, 0.0)


def _smooth(spread: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """A deviation from few samples may be far too small by chance: at least half of what its bin of |oracle| has."""
    import torch

    smooth = spread.flatten().clone()
    for _, where in _bins(exact, exact.isfinite()):
        usual = smooth[where].square().mean().sqrt()
        smooth[where] = torch.maximum(smooth[where], usual / 2)
    return smooth.view_as(spread)


def baseline(op: Op, workload: Workload, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Plain PyTorch in the workload's dtype, here on the CPU."""
    return _per_output(op, op.reference(*(inputs.get(n) for n in op.inputs), **dict(workload.attributes)))


def _per_output(op: Op, results: Any) -> dict[str, torch.Tensor]:
    results = results if isinstance(results, tuple) else (results,)
    return dict(zip(op.outputs, results, strict=True))


def judge(
    outputs: dict[str, torch.Tensor],
    truth: Oracle,
    plain: dict[str, torch.Tensor],
    prior: Prior,
    controls: bool = False,
) -> Judgement:
    """Hold every output against the oracle; with `controls`, try answers that are wrong on purpose too."""
    errors: list[Errors] = []
    tried: dict[str, bool] = {}
    for name, value in outputs.items():
        exact = truth.exact[name]
        if list(exact.shape) != list(value.shape):
            return Judgement(
                Finding("shape", f"`{name}` has shape {tuple(value.shape)}, the oracle {tuple(exact.shape)}"), (), {}
            )
        if value.numel() == 0:
            continue
        number = dtype(value.dtype)
        rounded = truth.rounded(name, number)
        got = _numbers(value)
        if wrong := _non_finite(name, got, rounded, exact.double(), number):
            return Judgement(Finding("nonfinite", wrong), tuple(errors), tried)
        unit = truth.unit(name, rounded, number)
        finite = rounded.isfinite()
        scale: _Scale | _Only
        if truth.only(number):
            scale = _Only(rounded, unit, _numbers(plain[name].to(value.dtype)))
        else:
            scale = _Scale(
                exact.double(),
                rounded,
                unit,
                finite,
                plain[name].double(),
                prior.get(name, {}),
                truth.floor(number),
            )
        found, place = scale.compare(name, got)
        if found is None:
            continue
        errors.append(found)
        if found.share > 1:
            return Judgement(Finding("values", _explain(found, value, rounded, unit, place)), tuple(errors), tried)
        for control, fake in (_controls(rounded, finite, unit) if controls else {}).items():
            shown, _ = scale.compare(name, fake)
            tried[control] = tried.get(control, False) or (shown is not None and shown.share > 1)
    return Judgement(None, tuple(errors), tried)


class _Scale:
    """Units, bins and PyTorch's own errors for one output."""

    def __init__(
        self,
        exact: torch.Tensor,
        rounded: torch.Tensor,
        unit: torch.Tensor,
        finite: torch.Tensor,
        plain: torch.Tensor,
        prior: dict[int, Figures],
        floor: Figures,
    ) -> None:
        self.exact, self.unit, self.floor = exact, unit, floor
        self.bins = _bins(rounded, finite)
        error = ((plain - exact).abs() / unit).nan_to_num(nan=0.0, posinf=0.0).flatten()
        self.distinct = [_distinct(exact.flatten()[where]) for _, where in self.bins]
        counted = zip(self.bins, self.distinct, strict=True)
        self.torch = [_joined(_figures(error[where]), prior, group, count) for (group, where), count in counted]

    def compare(self, name: str, got: torch.Tensor) -> tuple[Errors | None, int]:
        """The worst bin and, in it, the worst element."""
        error = ((got - self.exact).abs() / self.unit).flatten()
        worst: Errors | None = None
        place = 0
        for (_, where), theirs, count in zip(self.bins, self.torch, self.distinct, strict=True):
            ours = _figures(error[where])
            shares = {k: ours[k] / max(self.floor[k], SLACK[k] * theirs[k]) for k in SLACK if count >= _NEEDED[k]}
            figure = max(shares, key=lambda k: shares[k])
            ratio = ours[figure] / theirs[figure] if theirs[figure] else (1.0 if ours[figure] == 0 else math.inf)
            if worst is None or shares[figure] > worst.share:
                low, high = (float(v) for v in self.exact.flatten()[where].abs().aminmax())
                worst = Errors(
                    name, ours, theirs, shares[figure], ratio, f"{figure} where |oracle| is {low:.3g}…{high:.3g}"
                )
                place = int(where[error[where].argmax()])
        return worst, place


class _Only:
    """One output of which every element has one right value."""

    def __init__(self, rounded: torch.Tensor, unit: torch.Tensor, plain: torch.Tensor) -> None:
        self.rounded, self.unit = rounded, unit
        self.torch = _figures(self._off(plain))

    def compare(self, name: str, got: torch.Tensor) -> tuple[Errors, int]:
        off = self._off(got)
        wrong, ours = int(off.count_nonzero()), _figures(off)
        share = max(2.0, 2 * ours["max"]) if wrong else 0.0  # half a unit away stands another value
        theirs = self.torch["max"]
        ratio = ours["max"] / theirs if theirs else 1.0 if not wrong else math.inf
        where = f"the largest of {wrong} differences" if wrong else "every element is the right one"
        return Errors(name, ours, self.torch, share, ratio, where), int(off.argmax())

    def _off(self, got: torch.Tensor) -> torch.Tensor:
        """Units away from the right value: 0 only where it is the same number, or NaN too."""
        same = (got == self.rounded) & (got.signbit() == self.rounded.signbit())
        same |= got.isnan() & self.rounded.isnan()
        away = ((got - self.rounded).abs() / self.unit).nan_to_num(nan=1.0, posinf=1.0).clamp(min=0.5)
        return away.masked_fill(same, 0.0).flatten()


def _numbers(value: torch.Tensor) -> torch.Tensor:
    """As float64. A boolean counts by its byte, which is 0 or 1 and nothing else."""
    import torch

    return value.view(torch.uint8).double() if value.dtype == torch.bool else value.double()


def _distinct(values: torch.Tensor) -> int:
    """How many independent errors there are: where few values repeat, so do theirs."""
    some = values[:: max(1, values.numel() // 1024)]
    different = some.unique().numel()
    return values.numel() if 2 * different > some.numel() else different


def _figures(error: torch.Tensor) -> Figures:
    count = error.numel()
    rank = min(count, math.ceil(0.995 * count))
    return {
        "rms": float((error * error).mean().sqrt()),
        "p995": float(error.kthvalue(rank).values),
        "max": float(error.max()),
    }


def ulp(value: torch.Tensor, number: DType) -> torch.Tensor:
    """The spacing of `number`'s format at |value|, in float64; that of subnormals below its smallest normal."""
    import torch

    exponent = torch.frexp(value.abs()).exponent.double() - 1
    exponent = torch.where(value == 0, torch.full_like(exponent, number.min_exponent), exponent)
    return torch.exp2(exponent.clamp(min=number.min_exponent) - number.fraction)


def _joined(seen: Figures, prior: dict[int, Figures], group: int, count: int) -> Figures:
    """What was seen, or where too little was, the larger of that and the prior's nearest bin."""
    if count >= _ENOUGH or not prior:
        return seen
    near = prior[min(prior, key=lambda g: abs(g - group))]
    return {k: max(v, near[k]) for k, v in seen.items()}


def judge_maximum(outputs: dict[str, torch.Tensor], truth: Oracle, prior: Prior) -> Judgement:
    """For slices of a huge workload: NaN and Inf in place, and no error beyond what the prior allows."""
    errors: list[Errors] = []
    for name, value in outputs.items():
        exact, number = truth.exact[name].double(), dtype(value.dtype)
        rounded, got = truth.rounded(name, number), _numbers(value)
        if wrong := _non_finite(name, got, rounded, exact, number):
            return Judgement(Finding("nonfinite", wrong), tuple(errors), {})
        unit = truth.unit(name, rounded, number)
        if truth.only(number) and value.numel():
            found, first = _Only(rounded, unit, rounded).compare(name, got)
            errors.append(found)
            if found.share > 1:
                what = _explain(found, value, rounded, unit, first)
                return Judgement(Finding("values", what), tuple(errors), {})
            continue
        error = ((got - exact).abs() / unit).nan_to_num(nan=0.0).flatten()
        worst, place = (v.item() for v in error.max(0))
        theirs = max((figures["max"] for figures in prior.get(name, {}).values()), default=0.0)
        share = worst / max(truth.floor(number)["max"], SLACK["max"] * theirs)
        ratio = worst / theirs if theirs else 1.0
        errors.append(Errors(name, {"max": worst}, {"max": theirs}, share, ratio, "maximum over the slice"))
        if share > 1:
            what = _explain(errors[-1], value, rounded, unit, int(place))
            return Judgement(Finding("values", what), tuple(errors), {})
    return Judgement(None, tuple(errors), {})


def calibrate(prior: Prior, truth: Oracle, plain: dict[str, torch.Tensor]) -> None:
    """Add PyTorch's errors on one sample to a prior."""
    for name, value in plain.items():
        if not value.numel() or truth.only(dtype(value.dtype)):
            continue
        rounded = truth.rounded(name, dtype(value.dtype))
        error = (
            (value.double() - truth.exact[name].double()).abs() / truth.unit(name, rounded, dtype(value.dtype))
        ).flatten()
        bins = prior.setdefault(name, {})
        for group, where in _bins(rounded, rounded.isfinite() & value.isfinite()):
            seen = _figures(error[where])
            bins[group] = {k: max(v, bins.get(group, seen)[k]) for k, v in seen.items()}


def _bins(rounded: torch.Tensor, finite: torch.Tensor) -> list[tuple[int, torch.Tensor]]:
    """Element indices grouped by |oracle|, sixteenfold apart, none too small to hold a statistic."""
    import torch

    where = finite.flatten().nonzero().flatten()
    if not where.numel():
        return []
    group = torch.frexp(rounded.flatten()[where].abs()).exponent.div(4, rounding_mode="floor")
    group = torch.where(rounded.flatten()[where] == 0, torch.full_like(group, -1000), group)
    order = group.argsort(descending=True, stable=True)
    labels, counts = group[order].unique_consecutive(return_counts=True)
    bins: list[tuple[int, torch.Tensor]] = []
    for label, part in zip(labels.tolist(), where[order].split(counts.tolist()), strict=True):
        if bins and (part.numel() < _FEW or bins[-1][1].numel() < _FEW):
            bins[-1] = (bins[-1][0], torch.cat([bins[-1][1], part]))
        else:
            bins.append((label, part))
    return bins


def _non_finite(name: str, got: torch.Tensor, rounded: torch.Tensor, exact: torch.Tensor, number: DType) -> str:
    """NaN and Inf must stand exactly where the oracle has them; next to overflow either side of it is right."""
    near = exact.abs() >= number.max * (1 - 2.0**-number.fraction)
    wrong = (got.isnan() != rounded.isnan()) | (
        (got.isinf() | rounded.isinf()) & (got != rounded) & ~near & ~rounded.isnan()
    )
    if not bool(wrong.any()):
        return ""
    first = int(wrong.flatten().nonzero()[0])
    count = int(wrong.sum())
    seen, true = float(got.flatten()[first]), float(exact.flatten()[first])
    return f"`{name}`{_index(first, got)} is {seen:g}, the oracle {true:g} ({count} such elements)"


def beyond(outputs: dict[str, torch.Tensor], truth: Oracle) -> dict[str, int]:
    """Outside the declared range: how many elements are finite where the oracle is not, or the other way."""
    count = 0
    for name, value in outputs.items():
        rounded = truth.rounded(name, dtype(value.dtype))
        count += int((value.double().isfinite() != rounded.isfinite()).sum())  # no isfinite of 8-bit floats
    return {"elements": sum(v.numel() for v in outputs.values()), "finiteness_differs": count}


def _controls(rounded: torch.Tensor, finite: torch.Tensor, unit: torch.Tensor) -> dict[str, torch.Tensor]:
    """Answers that must not pass: zeros, a constant, the right values shuffled. Only those that are wrong here by more
    than the oracle's own rounding."""
    import torch

    values = rounded[finite]
    if not values.numel():
        return {}
    shuffled = rounded.flatten().roll(1).view_as(rounded)
    fakes = {
        "zeros": torch.zeros_like(rounded), "constant": torch.full_like(rounded, float(values.median())),
        "shuffled": torch.where(shuffled.isfinite(), shuffled, torch.zeros_like(rounded)),
    }  # fmt: skip
    return {name: fake for name, fake in fakes.items() if bool((((fake - rounded).abs() > 4 * unit) & finite).any())}


def _index(flat: int, like: torch.Tensor) -> str:
    place = []
    for size in reversed(like.shape):
        place.append(flat % size)
        flat //= size
    return str(list(reversed(place))) if place else ""


def _explain(found: Errors, value: torch.Tensor, rounded: torch.Tensor, unit: torch.Tensor, place: int) -> str:
    got, want = float(_numbers(value).flatten()[place]), float(rounded.flatten()[place])
    theirs = found.torch["max"]
    off = abs(got - want) / float(unit.flatten()[place])
    return (
        f"`{found.output}`{_index(place, value)} is {got:.9g}, the oracle {want:.9g}: {off:.3g} "
        f"units off, plain PyTorch at most {theirs:.3g}; {found.where} is {found.share:.3g}× its limit"
    )
