"""One workload through one worker: what was seen (Outcome), under which conditions, and how a huge one is judged.

The calls themselves and what is looked at after each are in check.calls. A large workload takes one call."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.backends import Availability
from assay.check.judge import Errors, Finding, Prior, judge_maximum
from assay.check.oracle import oracle
from assay.check.turn import Turn
from assay.errors import UsageError
from assay.kernel import Kernel
from assay.op import Op, Tensor
from assay.worker import Worker
from assay.workload import Workload

if TYPE_CHECKING:
    import torch

    from assay.check.plain import PlainTorch

LARGE = 1 << 21
"""Elements from which a workload runs once and is judged in slices, where its results are independent along an axis."""
HUGE = 1 << 27
"""Elements from which only some slices are judged, and one workload at a time is run."""
_SLICE, _SLICES = 1 << 24, 16
"""Elements in a slice, and how many are judged: the first, the last, those where an index outgrows 31 or 32 bits, and
others spread over the rest. Whether every element was written is looked at everywhere."""
_ONE_AT_A_TIME = Turn()
"""Two huge workloads at once would not fit into memory."""


@dataclass(frozen=True)
class Outcome:
    finding: Finding | None = None
    errors: tuple[Errors, ...] = ()
    deterministic: bool = True
    controls: dict[str, bool] = field(default_factory=dict)
    seconds: tuple[float, ...] = ()
    beyond: dict[str, int] = field(default_factory=dict)
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    compared: tuple[int, ...] = ()
    """Integers that the PTX started compares registers with."""
    lost: bool = False
    """The worker is gone, or cannot be trusted any more."""
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Conditions:
    """What stays the same over the workloads of one kernel and dtype."""

    here: Availability
    plain: PlainTorch
    prior: Prior
    parameters: dict[str, Any]
    threads: int
    programs: int = 1 << 62
    """Of one launch, in an interpreter."""
    depth: str = "deep"
    """`lean`: two calls on one set of values. `usual`: five on three sets. `deep`: further values, and on a GPU calls
    while the device is busy. Not every one of many workloads is looked at so closely."""


def run(worker: Worker, kernel: Kernel, op: Op, workload: Workload, conditions: Conditions) -> Outcome:
    """Try one workload and say what was seen."""
    elements = op.elements(workload)
    with _ONE_AT_A_TIME if elements > HUGE else contextlib.nullcontext():
        from assay.check.calls import Trial

        return Trial(worker, kernel, op, workload, conditions, elements > LARGE).outcome()


def raised(error: dict[str, Any], seconds: tuple[float, ...] = ()) -> Outcome:
    """An exception inside the worker. After a CUDA error the process's context is dead."""
    text = error["what"] or error["message"]
    words = text if error["ours"] else f"{error['type']}: {text}"
    detector = (
        "build"
        if error["type"] == "BuildError"
        else "launch"
        if "CUDA" in text or "cuda" in error["type"].lower()
        else "exception"
    )
    if error["type"] in ("SystemExit", "KeyboardInterrupt"):
        detector = "exit"
    where = f" at {error['where']}" if error["where"] else ""
    where += f"\n  → {error['fix']}" if error.get("fix") else ""
    return Outcome(
        Finding(detector, f"{_short(words)}{where}"), seconds=seconds, lost=detector in ("launch", "exit"), detail=error
    )


def _short(text: str, limit: int = 1500) -> str:
    return text if len(text) <= limit else text[:limit] + " …"


def slices(length: int, step: int, row: int, count: int = _SLICES) -> list[int]:
    """Where the judged slices of `step` begin, the last first: an index that overflows shows there. A step along the
    axis is `row` elements of the largest tensor."""
    total = -(-length // step)
    chosen = {0, total - 1} | {(b // row - o) // step for b in (1 << 31, 1 << 32) if b < length * row for o in (0, 1)}
    spread = min(total, count)
    for i in range(spread):
        if len(chosen) >= spread:
            break
        chosen.add(i * total // spread)
    return [i * step for i in sorted(chosen, reverse=True)]


@contextlib.contextmanager
def _more_threads() -> Iterator[None]:
    """For one huge workload: others, which are small, gain nothing by threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(max(before, (os.cpu_count() or 2) // 2))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def judged_in_slices(
    op: Op,
    workload: Workload,
    drawn: dict[str, torch.Tensor],
    result: dict[str, torch.Tensor],
    prior: Prior,
    seconds: tuple[float, ...] = (),
    artifacts: list[dict[str, Any]] | None = None,
    size: int = 0,
) -> Outcome:
    """A float64 oracle of the whole would fit neither into memory nor into patience: judge slices of so many elements
    along the axis of independent results. Without a size they cover all of a workload that is not huge."""
    if not op.independent:
        raise UsageError(
            f"{op.name} has no independent axis to judge so large a workload along", fix="choose fewer elements"
        )
    length = int(workload.named[op.independent])
    elements = op.elements(workload)
    size = size or (_SLICE if elements > HUGE else -(-elements // _SLICES))
    each = max(1, elements // length)
    step = max(1, size // each)
    count = max(2, _SLICES * size // (step * each))  # where one is larger than asked for, fewer of them
    row = max(v.numel() for v in (*drawn.values(), *result.values())) // length
    errors: list[Errors] = []
    for start in slices(length, step, row, count):
        inputs = {n: _cut(v, op.inputs[n], op.independent, start, step) for n, v in drawn.items()}
        outputs = {n: _cut(v, op.outputs[n], op.independent, start, step) for n, v in result.items()}
        with _more_threads() if elements > HUGE else contextlib.nullcontext():
            verdict = judge_maximum(outputs, oracle(op, workload, inputs), prior)
        errors += verdict.errors
        if verdict.finding:
            what = f"{verdict.finding.what} (in the slice of {op.independent} from {start})"
            return Outcome(Finding(verdict.finding.detector, what), tuple(errors), seconds=seconds)
    worst = max(errors, key=lambda e: e.share, default=None)
    return Outcome(None, (worst,) if worst else (), seconds=seconds, artifacts=artifacts or [])


def _cut(value: torch.Tensor, declared: Tensor, axis: str, start: int, step: int) -> torch.Tensor:
    """A tensor's part along an axis; all of one that does not have it."""
    if axis not in declared.shape:
        return value
    dim = declared.shape.index(axis)
    return value.narrow(dim, start, min(step, value.shape[dim] - start))
