"""How sharp and how safe `check`'s limit for values is, measured on an op in a dtype.

*Safe*: honest evaluations of the op (assay.check.evaluations) are judged like a kernel's outputs; every finding is a
false alarm. *Sharp*: errors are planted in PyTorch's outputs, on all, one in a hundred or one of the elements; the
smallest size that is found in 99 of 100 runs is the **detection floor**. A run judges a plan of workloads as `check`
does and ends at the first finding."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from assay import coverage
from assay.check.evaluations import evaluate, variations
from assay.check.judge import Prior, calibrate, judge
from assay.check.oracle import Oracle, baseline, oracle
from assay.check.plain import SAMPLE, UNUSUAL
from assay.dtype import DType, dtype
from assay.inputs import generate
from assay.op import Op
from assay.workload import Workload

if TYPE_CHECKING:
    import torch

EFFORT = coverage.Effort(24, 1 << 11, 1 << 14, 1 << 14, 0)
"""Of a run: fewer and smaller workloads than `check` has, so that what is found here is found there."""
RUNS, MISSED = 100, 1
"""Runs for a figure, and how many of them may miss: 99 %."""
SHARES = ("all", "1 %", "one")
"""Of the elements."""
FACTOR = 4
"""Times PyTorch's largest error: what must always be found on 1 % of the elements."""
_SIZES = [2.0 ** (i / 2) for i in range(-6, 41)]
"""Planted errors, in units."""


@dataclass(frozen=True)
class Calibration:
    """What was measured of one op in one dtype."""

    op: str
    dtype: str
    honest: int
    """Honest evaluations, each on every workload of a run."""
    judged: int
    """Their outputs that were judged."""
    alarms: tuple[str, ...]
    """Those that were called wrong: which, on what, and why."""
    closest: float
    """The largest share of the limit that an honest evaluation took."""
    torch: float
    """PyTorch's own largest error in a run, in units."""
    floors: dict[str, float | None]
    """By share of the elements, in units; None where no size is found in 99 of 100 runs."""
    found: float
    """Share of the runs in which FACTOR times PyTorch's largest on 1 % of the elements was found; of exact ops: one
    flipped bit in one element of one workload."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class _Case:
    """One workload with its oracle."""

    workload: Workload

    @cached_property
    def inputs(self) -> dict[str, torch.Tensor]:
        return generate(self.workload)

    @cached_property
    def truth(self) -> Oracle:
        return oracle(self.workload, self.inputs)

    @cached_property
    def plain(self) -> dict[str, torch.Tensor]:
        found = baseline(self.workload, self.inputs)
        return {n: v.to(self.workload.dtype_of(self.workload.op.outputs[n]).torch) for n, v in found.items()}

    @cached_property
    def units(self) -> dict[str, torch.Tensor]:
        rounded = {n: self.truth.rounded(n, dtype(v.dtype)) for n, v in self.plain.items()}
        return {n: self.truth.unit(n, rounded[n], dtype(v.dtype)) for n, v in self.plain.items()}

    @cached_property
    def largest(self) -> float:
        """PyTorch's largest error here, in units."""
        off = [
            ((v.double() - self.truth.exact[n].double()).abs() / self.units[n]).nan_to_num(0.0, 0.0)
            for n, v in self.plain.items()
            if v.numel() and v.is_floating_point()
        ]
        return max((float(o.max()) for o in off), default=0.0)

    @property
    def exact(self) -> bool:
        return all(self.truth.only(n, dtype(v.dtype)) for n, v in self.plain.items())


def measure(op: Op, number: DType, runs: int = RUNS) -> Calibration:
    """Calibrate the judge on one op in one dtype."""
    prior = _prior(op, number)
    plans = [[_Case(row.workload) for row in coverage.plan(op, number, EFFORT, seed).rows] for seed in range(3)]
    plans = [[case for case in plan if case.workload.values not in UNUSUAL] for plan in plans]
    honest, judged, closest, alarms = 0, 0, 0.0, []
    for name, results in _honest(op, plans[0]):
        honest += 1
        for case, outputs in results:
            verdict = judge(outputs, case.truth, case.plain, prior)
            judged += 1
            closest = max([closest, *(e.share for e in verdict.errors)])
            if verdict.finding:
                alarms.append(f"{name} on {case.workload}: {verdict.finding.what}")
    exact = all(case.exact for plan in plans for case in plan)
    largest = 0.0 if exact else max(case.largest for plan in plans for case in plan)

    def caught(plant: Callable[[_Case, random.Random], dict[str, torch.Tensor] | None]) -> float:
        missed = 0
        for run in range(runs):
            rng = random.Random(run)
            cases = plans[run % len(plans)]
            if not any(_found(case, plant(case, rng), prior) for case in cases):
                missed += 1
                if missed > MISSED * runs / RUNS and runs >= RUNS:  # enough to know that it is no 99 %
                    return 1 - missed / (run + 1)
        return 1 - missed / runs

    if exact:
        flips = [_flip(random.Random(run), plans[run % 3]) for run in range(10 * runs)]
        seen = [_found(case, outputs, prior) for case, outputs in flips if outputs is not None]
        floors: dict[str, float | None] = dict.fromkeys(SHARES, 0.0)
        return Calibration(
            op.name, number.name, honest, judged, tuple(alarms), closest, 0.0, floors, sum(seen) / max(1, len(seen))
        )
    floors = {}
    for share in SHARES:

        def enough(size: float, share: str = share) -> bool:
            return caught(lambda case, rng: _planted(case, rng, size, share)) >= 1 - MISSED / RUNS

        floors[share] = _smallest(enough)
    found = caught(lambda case, rng: _planted(case, rng, FACTOR * largest, "1 %"))
    return Calibration(op.name, number.name, honest, judged, tuple(alarms), closest, largest, floors, found)


def _prior(op: Op, number: DType) -> Prior:
    prior: Prior = {}
    for row in coverage.plan(op, number, SAMPLE).rows:
        if row.workload.values not in UNUSUAL:
            case = _Case(row.workload)
            calibrate(prior, case.truth, case.plain)
    return prior


def _honest(op: Op, cases: list[_Case]) -> Iterator[tuple[str, list[tuple[_Case, dict[str, torch.Tensor]]]]]:
    for how in variations():
        yield str(how), [(case, evaluate(case.workload, case.inputs, how)) for case in cases]


def _found(case: _Case, outputs: dict[str, torch.Tensor] | None, prior: Prior) -> bool:
    return outputs is not None and judge(outputs, case.truth, case.plain, prior).finding is not None


def _smallest(caught: Callable[[float], bool]) -> float | None:
    """The smallest size that is caught, by halving the list of sizes."""
    low, high = 0, len(_SIZES)
    while low < high:
        middle = (low + high) // 2
        if caught(_SIZES[middle]):
            high = middle
        else:
            low = middle + 1
    return _SIZES[low] if low < len(_SIZES) else None


def _planted(case: _Case, rng: random.Random, size: float, share: str) -> dict[str, torch.Tensor] | None:
    """PyTorch's outputs, `size` units further from the oracle at some elements. None where nothing changes."""
    import torch

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
    """One bit of one element of one output of one workload; None where the result is as right as before: NaN stays NaN,
    a zero changes a sign that the op leaves open, or there is no element."""
    import torch

    case = rng.choice(cases)
    outputs = dict(case.plain)
    name = rng.choice([n for n, v in outputs.items()])
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
