"""Judges numbers: errors in units of the format, compared with plain PyTorch's errors on the same inputs.

Within bins of |oracle|, a kernel's RMS, 99.5th percentile and maximum may each be SLACK times PyTorch's, and need not
be better than those of a careful float32 evaluation that is rounded once; the bound `Op.lost` limits its maximum. In
formats narrower than float32 the bias is judged too, which distinguishes rounding to nearest from truncation.
Independent errors do not all reach their bounds, so of the bound on the roundings of single elements the percentile may
show a half and the RMS a quarter; the error of a sum is shared by all that is computed from it, and counts in full. A
handful of elements says little about PyTorch's error, so in small bins it is at least the error on a fixed larger
sample of the op (`Prior`). Before a kernel is called wrong, the op is evaluated in float32 in other orders on the same
inputs; the errors of these evaluations count like PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

from assay.check.figures import (
    NAMES,
    NEEDED,
    ROUNDED,
    SLACK,
    Errors,
    Figures,
    distinct,
    figures,
    joined,
    of_results,
    sides,
)
from assay.check.one_right_value import OneRightValue, numbers, place_in
from assay.check.oracle import Oracle, all_finite, bins, ulp
from assay.dtype import DType, dtype
from assay.kernel import Kernel
from assay.lazy import torch

LESS_ACCURATE = 64.0
"""The multiple of the tolerance up to which a peer's result is less accurate rather than wrong. Zeros in place of a
bf16 result are about 256 tolerances off."""
HOPELESS = 4096.0
"""The multiple of the tolerance that no order of operations reaches. A single accumulator for 2¹⁸ terms, one of which
is larger than all others, reaches 1200."""
_FAR = 1e6
_STAGES = 8
"""The stages of a transform of 256 elements, each of which rounds."""
Prior = dict[str, dict[int, Figures]]
"""PyTorch's own errors on a fixed sample: output → bin of |oracle| → figures."""


@dataclass(frozen=True)
class Finding:
    """One error, and the detector that found it."""

    detector: str
    what: str
    share: float = 0.0
    """The error of wrong values as a multiple of its tolerance; 0 if something else is wrong."""
    as_rounded: bool = False
    """Whether no error of wrong values exceeds the cost of rounding every term of a sum to the output's format."""
    details: tuple[str, ...] = ()
    """Indented lines with more about it, for the end of a failed check."""

    @property
    def less_accurate(self) -> bool:
        """True if the result is only less accurate than our own kernels may be, and not wrong: excused in a peer."""
        return self.detector == "values" and 0 < self.share <= LESS_ACCURATE

    def excused_in(self, kernel: Kernel) -> bool:
        """True if the result is only less accurate and the kernel is a peer. A peer may keep weights or sums in the
        workload's format, as cuDNN does before a bias is added, or inside an FFT: where terms cancel, that costs any
        multiple of the tolerance."""
        return kernel.peer and (self.less_accurate or self.as_rounded)


@dataclass(frozen=True)
class Judgement:
    finding: Finding | None
    errors: tuple[Errors, ...]
    controls: dict[str, bool]
    """Whether zeros, a constant and the shuffled right values were rejected; only those that are wrong here."""


class Measures:
    """The right answers for one set of values with their tolerances, computed once for all results that are judged."""

    def __init__(self, oracle: Oracle, plain: dict[str, torch.Tensor], prior: Prior) -> None:
        self.oracle, self._plain, self._prior = oracle, plain, prior
        self._measures: dict[tuple[str, str], _Measure] = {}

    def of(self, name: str, number: DType) -> _Measure:
        key = name, number.name
        if key not in self._measures:
            self._measures[key] = _Measure(name, number, self.oracle, self._plain[name], self._prior)
        return self._measures[key]

    @cached_property
    def refined(self) -> Measures:
        """The same with tolerances that are estimated more accurately, if they are estimates."""
        better = self.oracle.refined()
        return self if better is None else Measures(better, self._plain, self._prior)

    def others(self, name: str) -> list[torch.Tensor]:
        """Return this output of other honest evaluations."""
        return [outputs[name].double() for outputs in self.oracle.others()]


class _Measure:
    """The right answer for one output in its format, its unit of error and its tolerances."""

    def __init__(self, name: str, number: DType, oracle: Oracle, plain: torch.Tensor, prior: Prior) -> None:
        self.exact, self.rounded = oracle.exact[name].double(), oracle.rounded(name, number)
        self.unit, self.finite = oracle.unit(name, self.rounded, number), self.rounded.isfinite()
        self.plain = plain
        self.scale: _Scale | OneRightValue
        if oracle.only(name, number):
            between = partial(oracle.range_of, name)
            self.scale = OneRightValue(self.rounded, self.unit, numbers(plain.to(number.torch)), oracle.signed, between)
        else:
            floor = oracle.floor(name, number)
            side = sides(self.exact, self.rounded, self.unit, number)
            self.scale = _Scale(
                self.exact, self.rounded, self.unit, self.finite, plain.double(), prior.get(name, {}), floor, side
            )


def judge(
    outputs: dict[str, torch.Tensor], measures: Measures, controls: bool = False, orders: bool = True
) -> Judgement:
    """Compare every output with the oracle and, if it seems wrong, with other `orders` of evaluation too. With
    `controls`, judge answers that are wrong on purpose as well."""
    errors: list[Errors] = []
    tried: dict[str, bool] = {}
    for name, value in outputs.items():
        shape = measures.oracle.exact[name].shape
        if list(shape) != list(value.shape):
            what = f"`{name}` has shape {tuple(value.shape)}, must be {tuple(shape)}"
            return Judgement(Finding("values", what), (), {})
        if value.numel() == 0:
            continue
        right = measures.of(name, dtype(value.dtype))
        got, scale = numbers(value), right.scale
        behind = partial(measures.oracle.behind, name)
        if wrong := _non_finite(name, got, right.rounded, right.exact, dtype(value.dtype), right.plain, behind):
            return Judgement(Finding("nonfinite", wrong), tuple(errors), tried)
        worst, place = scale.compare(name, got)
        if worst is None:
            continue
        if orders and worst.share > 1 and isinstance(scale, _Scale):
            right = measures.refined.of(name, dtype(value.dtype))
            scale = right.scale
            assert isinstance(scale, _Scale)
            worst, place = scale.nearest(name, got, partial(measures.others, name))
        errors.append(worst)
        if worst.share > 1:
            details: tuple[str, ...] = ()
            if isinstance(scale, OneRightValue):
                what = scale.explain(worst, value, place)
            else:
                what, details = _explain(worst, value, measures.oracle, right.rounded, right.unit, place)
            share = worst.share if isinstance(scale, _Scale) else 0.0  # where bits are promised, none may be off
            rounded = share > 0 and as_rounded(measures.oracle, name, got, dtype(value.dtype), transformed=True)
            return Judgement(Finding("values", what + behind(place), share, rounded, details), tuple(errors), tried)
        for control, fake in (_controls(right.rounded, right.finite, right.unit) if controls else {}).items():
            shown, _ = scale.compare(name, fake, admitted=worst.admitted)
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
        side: torch.Tensor | None,
    ) -> None:
        self.exact, self.unit, self.floor = exact, unit, floor
        self.bins = bins(rounded, finite)
        self.sides = [None if side is None else side[where] for _, where in self.bins]
        self.distinct = [distinct(exact.flatten()[where]) for _, where in self.bins]
        counted = zip(self.bins, self._figures(plain), self.distinct, strict=True)
        self.torch = [joined(seen, prior, group, count) for (group, _), seen, count in counted]
        self._admitted: list[Figures] | None = None

    def _figures(self, value: torch.Tensor) -> list[Figures]:
        """Return the figures of an honest evaluation in each bin. Its error does not count where it is not finite."""
        error = (value - self.exact).div_(self.unit).nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0).flatten()
        return [figures(error[where], side) for (_, where), side in zip(self.bins, self.sides, strict=True)]

    def admit(self, others: Callable[[], list[torch.Tensor]]) -> None:
        """Count the errors of other honest evaluations like PyTorch's. All elements of a row share the error of its
        sum, so their RMS varies from one order to another as much as a single element does."""
        if self._admitted is not None:
            return
        varies = {k: SLACK["max"] / slack for k, slack in SLACK.items()}
        self._admitted = self.torch
        for other in others():
            allowed = zip(self._admitted, self._figures(other), strict=True)
            self._admitted = [{k: max(a[k], s[k] * varies[k]) for k in a} for a, s in allowed]

    def nearest(self, name: str, got: torch.Tensor, others: Callable[[], list[torch.Tensor]]) -> tuple[Errors, int]:
        """Return the worst bin, and the index of its worst element, with other orders admitted if it needs them."""
        worst, place = self.compare(name, got)
        assert worst is not None
        if 1 < worst.share <= HOPELESS:
            self.admit(others)
            worst, place = self.compare(name, got, admitted=True)
            assert worst is not None
            worst = replace(worst, admitted=worst.share <= 1)
        return worst, place

    def compare(self, name: str, got: torch.Tensor, admitted: bool = False) -> tuple[Errors | None, int]:
        """Return the worst bin and the index of its worst element. `admitted`: other evaluations' errors count too."""
        limits = self._admitted if admitted and self._admitted is not None else self.torch
        error = (got - self.exact).div_(self.unit).flatten()
        worst: Errors | None = None
        place = 0
        parts = zip(self.bins, self.sides, self.torch, limits, self.distinct, strict=True)
        for (_, where), side, plain, allowed, count in parts:
            kernel = figures(error[where], side)
            judged = [k for k in kernel if count >= NEEDED[k] and (k != "bias" or allowed["max"] <= ROUNDED)]
            shares = {k: kernel[k] / max(self.floor[k], SLACK[k] * allowed[k]) for k in judged}
            figure = max(shares, key=lambda k: shares[k])
            ratio = kernel[figure] / plain[figure] if plain[figure] else (1.0 if kernel[figure] == 0 else math.inf)
            if worst is None or shares[figure] > worst.share:
                low, high = (float(v) for v in self.exact.flatten()[where].abs().aminmax())
                words = f"{NAMES[figure]} {of_results(low, high)}"
                worst = Errors(name, kernel, plain, shares[figure], ratio, words, figure)
                place = int(where[error[where].abs().argmax()])
        return worst, place


def as_rounded(truth: Oracle, name: str, got: torch.Tensor, number: DType, transformed: bool = False) -> bool:
    """True if every error is at most one ulp of the format at the op's magnitude: half of it for terms that were
    rounded to the format, half for the result. Always False for an op that declares no magnitude. With `transformed`,
    the ulp is at the largest magnitude of all elements, as if sums were rounded in a transform of the image (FFT,
    Winograd); in float32, in which the transform itself is computed, _STAGES ulps are allowed."""
    magnitude = truth.magnitude[name]
    if magnitude is None:
        return False
    finite = magnitude.nan_to_num(0.0, 0.0, 0.0)
    allowed = ulp(finite.max() if transformed and finite.numel() else finite, number)
    allowed = allowed * (_STAGES if transformed and number.itemsize == 4 else 1)
    return bool(((got - truth.exact[name].double()).abs().nan_to_num(0.0, 0.0, 0.0) <= allowed).all())


def judge_maximum(outputs: dict[str, torch.Tensor], truth: Oracle, prior: Prior) -> Judgement:
    """Judge slices of a huge workload: NaN and Inf must match, and no error may exceed what the prior allows."""
    errors: list[Errors] = []
    for name, value in outputs.items():
        exact, number = truth.exact[name].double(), dtype(value.dtype)
        rounded, got = truth.rounded(name, number), numbers(value)
        behind = partial(truth.behind, name)
        if wrong := _non_finite(name, got, rounded, exact, number, behind=behind):
            return Judgement(Finding("nonfinite", wrong), tuple(errors), {})
        unit = truth.unit(name, rounded, number)
        if truth.only(name, number) and value.numel():
            only = OneRightValue(rounded, unit, rounded, truth.signed, partial(truth.range_of, name))
            errors_here, first = only.compare(name, got)
            errors.append(errors_here)
            if errors_here.share > 1:
                what = only.explain(errors_here, value, first) + behind(first)
                return Judgement(Finding("values", what), tuple(errors), {})
            continue
        error = ((got - exact).abs() / unit).nan_to_num(nan=0.0).flatten()
        worst, place = (v.item() for v in error.max(0))
        torch_max = max((figures["max"] for figures in prior.get(name, {}).values()), default=0.0)
        floor = truth.floor(name, number)["max"]
        share = worst / max(floor, SLACK["max"] * torch_max)
        tight = share <= 1
        if 1 < share <= HOPELESS:
            unit = (truth.refined() or truth).unit(name, rounded, number)
            worst, place = (v.item() for v in ((got - exact).abs() / unit).nan_to_num(nan=0.0).flatten().max(0))
            off = [((other[name].double() - exact).abs() / unit).nan_to_num(nan=0.0) for other in truth.others()]
            share = worst / max(floor, SLACK["max"] * max([torch_max, *(float(o.max()) for o in off)]))
        ratio = worst / torch_max if torch_max else 1.0
        errors.append(
            Errors(
                name,
                {"max": worst},
                {"max": torch_max},
                share,
                ratio,
                "largest error in the slice",
                admitted=share <= 1 and not tight,
            )
        )
        if share > 1:
            what, details = _explain(errors[-1], value, truth, rounded, unit, int(place))
            near = as_rounded(truth, name, got, number, True)
            finding = Finding("values", what + behind(int(place)), share, near, details)
            return Judgement(finding, tuple(errors), {})
    return Judgement(None, tuple(errors), {})


def calibrate(prior: Prior, truth: Oracle, plain: dict[str, torch.Tensor]) -> None:
    """Add PyTorch's errors on one sample to a prior."""
    for name, value in plain.items():
        if not value.numel() or truth.only(name, dtype(value.dtype)):
            continue
        error, rounded = units_off(truth, name, value)
        known = prior.setdefault(name, {})
        for group, where in bins(rounded, rounded.isfinite() & numbers(value).isfinite()):
            seen = figures(error.flatten()[where], None)
            known[group] = {k: max(v, known.get(group, seen)[k]) for k, v in seen.items()}


def units_off(truth: Oracle, name: str, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return an answer's distance from the oracle in units, and the rounded oracle."""
    number = dtype(value.dtype)
    rounded = truth.rounded(name, number)
    return (value.double() - truth.exact[name].double()).abs() / truth.unit(name, rounded, number), rounded


def _non_finite(
    name: str,
    got: torch.Tensor,
    rounded: torch.Tensor,
    exact: torch.Tensor,
    number: DType,
    plain: torch.Tensor | None = None,
    behind: Callable[[int], str] = lambda place: "",
) -> str:
    """Describe NaN and Inf that differ from the oracle; empty if none do. If the oracle overflows by less than a factor
    of two, a large result of its sign passes; if it nearly overflows, an Inf passes. In place of an Inf of the oracle,
    plain PyTorch's value passes too: oneDNN pads an odd number of bf16 terms with a zero and multiplies the last term,
    which may be an Inf, by it. `behind` describes the inputs of an element."""
    if all_finite(got) and all_finite(rounded):
        return ""
    size = exact.abs()
    near = (size >= number.max * (1 - 2.0**-number.fraction)) & (size <= 2 * number.max)
    almost = near & (got * exact.sign() >= number.max / 2)
    wrong = (got.isnan() != rounded.isnan()) | (
        (got.isinf() | rounded.isinf()) & (got != rounded) & ~almost & ~rounded.isnan()
    )
    if plain is not None:
        plain = plain.double()
        same = (got == plain) | (got.isnan() & plain.isnan())
        wrong &= ~(same & exact.isinf())
    if not bool(wrong.any()):
        return ""
    first = int(wrong.flatten().nonzero()[0])
    count = int(wrong.sum())
    seen, true = float(got.flatten()[first]), float(exact.flatten()[first])
    such = f"{count} such element{'s' * (count != 1)}"
    return f"`{name}`{place_in(first, got)} is {seen:g}, must be {true:g} ({such}){behind(first)}"


def beyond(outputs: dict[str, torch.Tensor], truth: Oracle) -> dict[str, int]:
    """Return how many elements differ from the oracle in being finite, for values outside the declared range."""
    count = 0
    for name, value in outputs.items():
        rounded = truth.rounded(name, dtype(value.dtype))
        count += int((value.double().isfinite() != rounded.isfinite()).sum())  # 8-bit floats have no isfinite
    return {"elements": sum(v.numel() for v in outputs.values()), "finiteness_differs": count}


def _controls(rounded: torch.Tensor, finite: torch.Tensor, unit: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return answers that must not pass: zeros, a constant, the right values shuffled; only those that are wrong here
    by more than the oracle's own rounding."""
    values = rounded[finite]
    if not values.numel():
        return {}
    shuffled = rounded.flatten().roll(1).view_as(rounded)
    fakes = {
        "zeros": torch.zeros_like(rounded),
        "constant": torch.full_like(rounded, float(values.median())),
        "shuffled": torch.where(shuffled.isfinite(), shuffled, torch.zeros_like(rounded)),
    }
    return {name: fake for name, fake in fakes.items() if bool((((fake - rounded).abs() > 4 * unit) & finite).any())}


def _explain(
    errors: Errors, value: torch.Tensor, truth: Oracle, rounded: torch.Tensor, unit: torch.Tensor, place: int
) -> tuple[str, tuple[str, ...]]:
    """Return the worst element with its right value, and in further lines how far it is off and what may help."""
    got, want = float(numbers(value).flatten()[place]), float(rounded.flatten()[place])
    off = abs(got - want) / float(unit.flatten()[place])
    figure, units = errors.figure, f"{off:.3g}" if off < _FAR else "over a million"
    plain = f"plain PyTorch's largest is {errors.torch['max']:.3g}"
    details = [f"  error   {units} rounding unit{'s' * (units != '1')}; {plain}"]
    if figure != "max":
        there = f"is {errors.kernel[figure]:.3g}, plain PyTorch's {errors.torch[figure]:.3g}"
        details.append(f"          the {errors.where} {there}")
    if figure == "bias" and errors.kernel[figure] <= 1:  # digits that are cut cost at most a unit
        details.append("  → round to nearest, do not cut digits")
    op = truth.undeclared()
    if op and (hint := op.hint(got, want)):
        details.append(f"  → {hint}")
    which = "" if figure == "max" else f"{NAMES[figure]}: "
    seen = f"`{errors.output}`{place_in(place, value)} is {got:.9g}, must be {want:.9g}"
    return f"{seen} ({which}{errors.share:.3g}× its tolerance)", tuple(details)
