"""Judges a large workload in slices along the axis of independent results."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from assay.check.figures import Errors
from assay.check.judge import Prior, judge_maximum
from assay.check.oracle import oracle
from assay.check.outcome import Outcome
from assay.errors import UsageError
from assay.lazy import torch
from assay.op import Tensor
from assay.workload import Workload

HUGE = 1 << 27
"""Elements above which workloads run one at a time."""
_WHOLE = 1 << 23
"""Elements up to which all of a workload is judged; of a larger one only some slices are."""
_SLICE, _SLICES = 1 << 19, 16
"""Elements in a slice, and how many slices are judged: the first, the last, those where an index outgrows a number
format, and others spread over the rest. Whether every element was written is checked everywhere."""
_OUTGROWN = (1 << 24, 1 << 31, 1 << 32)
"""Indices that a float32, a signed and an unsigned 32-bit integer no longer hold."""


def slices(length: int, step: int, row: int, count: int = _SLICES) -> list[int]:
    """Return the starts of the slices of length `step` to judge, the last one first, because it shows an index
    overflow. A step along the axis is `row` elements of the largest tensor. The slices in between are random: a kernel
    cannot predict them."""
    total = -(-length // step)
    chosen = {0, total - 1} | {(b // row - o) // step for b in _OUTGROWN if b < length * row for o in (0, 1)}
    spread = min(total, count)
    for i in range(spread):
        if len(chosen) >= spread:
            break
        chosen.add(i * total // spread + secrets.randbelow(total // spread))
    return [i * step for i in sorted(chosen, reverse=True)]


@contextlib.contextmanager
def _more_threads() -> Iterator[None]:
    """Use several threads for one huge workload; small ones gain nothing from them. One of several judging processes
    keeps its single thread: the others use the remaining cores, and it may not have its parent's threads."""
    before = torch.get_num_threads()
    if multiprocessing.parent_process() is None:
        torch.set_num_threads(max(before, (os.cpu_count() or 2) // 2))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def judged_in_slices(
    workload: Workload,
    drawn: dict[str, torch.Tensor],
    result: dict[str, torch.Tensor],
    prior: Prior,
    seconds: tuple[float, ...] = (),
    artifacts: list[dict[str, Any]] | None = None,
    size: int = 0,
) -> Outcome:
    """Judge slices of `size` elements along the axis of independent results, since a float64 oracle of the whole would
    take too much memory and time. Without `size` they cover all of a workload that is not too large."""
    op = workload.op
    if not op.independent:
        raise UsageError(
            f"{op.name} has no independent axis to judge so large a workload along", fix="choose fewer elements"
        )
    length = int(workload.named[op.independent])
    if not length:  # no results
        return Outcome(None, seconds=seconds, artifacts=artifacts or [])
    elements = workload.elements
    size = size or (_SLICE if elements > _WHOLE else -(-elements // _SLICES))
    each = max(1, elements // length)
    step = max(1, size // each)
    count = max(2, _SLICES * size // (step * each))  # fewer slices if each is larger than requested
    row = max(v.numel() for v in (*drawn.values(), *result.values())) // length
    errors: list[Errors] = []
    for start in slices(length, step, row, count):
        inputs = {n: _cut(v, op.inputs[n], op.independent, start, step) for n, v in drawn.items()}
        outputs = {n: _cut(v, op.outputs[n], op.independent, start, step) for n, v in result.items()}
        with _more_threads() if elements > HUGE else contextlib.nullcontext():
            verdict = judge_maximum(outputs, oracle(workload, inputs), prior)
        errors += verdict.errors
        if verdict.finding:
            what = f"{verdict.finding.what}; in the slice of {op.independent} from {start}"
            return Outcome(replace(verdict.finding, what=what), tuple(errors), seconds=seconds)
    worst = max(errors, key=lambda e: e.share, default=None)
    return Outcome(None, (worst,) if worst else (), seconds=seconds, artifacts=artifacts or [])


def _cut(value: torch.Tensor, declared: Tensor, axis: str, start: int, step: int) -> torch.Tensor:
    """Return a tensor's part along an axis; the whole tensor if it does not have that axis."""
    if axis not in declared.shape:
        return value
    dim = declared.shape.index(axis)
    return value.narrow(dim, start, min(step, value.shape[dim] - start))
