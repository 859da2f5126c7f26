"""Measures the false alarms and the detection of `check`'s limit for values, on one op in one dtype.

*False alarms*: correct evaluations of the op (assay.check.evaluations) are judged like a kernel's outputs; every
finding is a false alarm. *Detection*: errors are planted in PyTorch's outputs, in all, 1 % or one of the elements; the
smallest size found in 99 of 100 runs is the **detection floor**. A run judges a plan of workloads as `check` does and
ends at the first finding."""

from __future__ import annotations

import itertools
import math
import random
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from assay import coverage
from assay.check.evaluations import evaluate, variations
from assay.check.judge import Measures, Prior, calibrate, judge
from assay.check.oracle import Oracle, baseline, oracle
from assay.check.plain import SAMPLE, UNUSUAL
from assay.dtype import DType, dtype
from assay.inputs import generate
from assay.lazy import torch
from assay.op import Op
from assay.workload import Workload

EFFORT = coverage.Effort(24, 1 << 11, 1 << 14, 1 << 14, 0, again=0)
"""The workloads of a run: fewer and smaller than in `check`, so that `check` finds whatever is found here."""
RUNS, MISSED = 100, 1
"""Runs for one figure, and how many of them may miss the error: 99 % must find it."""
SHARES = ("all", "1 %", "one")
"""The share of elements in which an error is planted."""
FACTOR = 4
"""An error of this many times PyTorch's largest must always be found in 1 % of the elements."""
_SIZES = [2.0 ** (i / 2) for i in range(-6, 41)]
"""The sizes of planted errors, in units."""


@dataclass(frozen=True)
class Calibration:
    """The results for one op in one dtype."""

    op: str
    dtype: str
    honest: int
    """The number of correct ways to evaluate the op; each is tried on every workload of a run."""
    judged: int
    """How many evaluations were judged."""
    alarms: tuple[str, ...]
    """The evaluations judged wrong: which one, on which workload, and why."""
    closest: float
    """The largest share of the limit that a correct evaluation reached."""
    torch: float
    """PyTorch's own largest error in a run, in units."""
    floors: dict[str, float | None]
    """The detection floor in units, by share of the elements; None if no size is found in 99 of 100 runs."""
    found: float
    """Share of the runs that found an error of FACTOR times PyTorch's largest in 1 % of the elements; for exact ops,
    the share of single flipped bits that were found."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class _Case:
    """One workload with its oracle."""

    workload: Workload
    prior: Prior = field(default_factory=dict)

    @cached_property
    def inputs(self) -> dict[str, torch.Tensor]:
        return generate(self.workload)

    @cached_property
    def truth(self) -> Oracle:
        return oracle(self.workload, self.inputs)

    @cached_property
    def plain(self) -> dict[str, torch.Tensor]:
        outputs = baseline(self.workload, self.inputs)
        return {n: v.to(self.workload.dtype_of(self.workload.op.outputs[n]).torch) for n, v in outputs.items()}

    @cached_property
    def measures(self) -> Measures:
        return Measures(self.truth, self.plain, self.prior)

    @cached_property
    def units(self) -> dict[str, torch.Tensor]:
        rounded = {n: self.truth.rounded(n, dtype(v.dtype)) for n, v in self.plain.items()}
        return {n: self.truth.unit(n, rounded[n], dtype(v.dtype)) for n, v in self.plain.items()}

    @cached_property
    def largest(self) -> float:
        """PyTorch's largest error on this workload, in units."""
        errors = [
            ((v.double() - self.truth.exact[n].double()).abs() / self.units[n]).nan_to_num(0.0, 0.0)
            for n, v in self.plain.items()
            if v.numel() and v.is_floating_point()
        ]
        return max((float(e.max()) for e in errors), default=0.0)

    @property
    def exact(self) -> bool:
        return all(self.truth.only(n, dtype(v.dtype)) for n, v in self.plain.items())


def measure(op: Op, number: DType, runs: int = RUNS) -> Calibration:
    """Calibrate the judge on one op in one dtype."""
    prior = _prior(op, number)
    plans = [[_Case(row.workload, prior) for row in coverage.plan(op, number, EFFORT, seed).rows] for seed in range(3)]
    plans = [[case for case in plan if case.workload.values not in UNUSUAL] for plan in plans]
    # If every bit is promised, a quotient computed through a reciprocal is wrong: it may cross a tie.
    ways = [way for way in variations(number) if op.roundings != 0 or way.division == "division"]
    closest, alarms = 0.0, []
    for way, case in itertools.product(ways, plans[0]):
        verdict = judge(evaluate(case.workload, case.inputs, way), case.measures)
        closest = max([closest, *(e.share for e in verdict.errors)])
        if verdict.finding:
            alarms.append(f"{way} on {case.workload}: {verdict.finding.what}")
    honest = (op.name, number.name, len(ways), len(ways) * len(plans[0]), tuple(alarms), closest)
    exact = all(case.exact for plan in plans for case in plan)

    def caught(plant: Callable[[_Case, random.Random], dict[str, torch.Tensor] | None]) -> float:
        missed = 0
        for run in range(runs):
            rng = random.Random(run)
            cases = plans[run % len(plans)]
            if not any(_is_caught(case, plant(case, rng)) for case in cases):
                missed += 1
                if missed > MISSED * runs / RUNS and runs >= RUNS:  # the share is certainly below 99 %
                    return 1 - missed / (run + 1)
        return 1 - missed / runs

    def smallest(share: str) -> float | None:
        """Return the smallest size that is caught, by bisection of the list of sizes."""

        def enough(size: float) -> bool:
            return caught(lambda case, rng: _planted(case, rng, size, share)) >= 1 - MISSED / RUNS

        at = bisect_left(_SIZES, True, key=enough)
        return _SIZES[at] if at < len(_SIZES) else None

    if exact:
        flips = [_flip(random.Random(run), plans[run % 3]) for run in range(10 * runs)]
        seen = [_is_caught(case, outputs) for case, outputs in flips if outputs is not None]
        return Calibration(*honest, 0.0, dict.fromkeys(SHARES, 0.0), sum(seen) / max(1, len(seen)))
    largest = max(case.largest for plan in plans for case in plan)
    floors = {share: smallest(share) for share in SHARES}
    detected = caught(lambda case, rng: _planted(case, rng, FACTOR * largest, "1 %"))
    return Calibration(*honest, largest, floors, detected)


def _prior(op: Op, number: DType) -> Prior:
    prior: Prior = {}
    for row in coverage.plan(op, number, SAMPLE).rows:
        if row.workload.values not in UNUSUAL:
            case = _Case(row.workload)
            calibrate(prior, case.truth, case.plain)
    return prior


def _is_caught(case: _Case, outputs: dict[str, torch.Tensor] | None) -> bool:
    return outputs is not None and judge(outputs, case.measures).finding is not None


def _planted(case: _Case, rng: random.Random, size: float, share: str) -> dict[str, torch.Tensor] | None:
    """Return PyTorch's outputs with some elements moved `size` units further from the oracle; None if nothing
    changes."""
    changed, outputs = False, dict(case.plain)
    for name, value in case.plain.items():
        if not value.numel() or not value.is_floating_point():
            continue
        count = {"all": value.numel(), "1 %": math.ceil(value.numel() / 100), "one": 1}[share]
        places = torch.randperm(value.numel(), generator=torch.Generator().manual_seed(rng.randrange(1 << 31)))[:count]
        wide, exact = value.double().flatten(), case.truth.exact[name].double().flatten()[places]
        sign = torch.where(wide[places] < exact, -1.0, 1.0).double()
        wide[places] += sign * size * case.units[name].flatten()[places]
        made = dtype(value.dtype).rounded(wide).to(value.dtype).view_as(value)
        changed |= not torch.equal(made.double().nan_to_num(), value.double().nan_to_num())
        outputs[name] = made
    return outputs if changed else None


def _flip(rng: random.Random, cases: list[_Case]) -> tuple[_Case, dict[str, torch.Tensor] | None]:
    """Flip one bit of one element of one output of one workload. Return None as the outputs if the result is as correct
    as before: NaN stays NaN, a zero changes a sign that the op does not define, or there is no element."""
    case = rng.choice(cases)
    outputs = dict(case.plain)
    name = rng.choice(list(outputs))
    value = outputs[name].clone()
    if not value.numel():
        return case, None
    raw = value.view(-1).view(torch.uint8)
    width = value.element_size()
    place, bit = rng.randrange(value.numel()), rng.randrange(8 * width)
    before = value.flatten()[place].clone()
    raw[place * width + bit // 8] ^= 1 << bit % 8
    after = value.flatten()[place]
    still = value.is_floating_point() and bool(before.double().isnan() and after.double().isnan())
    still |= not case.truth.signed and bool(before == after)
    outputs[name] = value
    return case, None if still else outputs
