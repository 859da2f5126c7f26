"""Shrinks a failing workload: every part is reset to its simplest value, sizes by bisection."""

from __future__ import annotations

import time
from collections.abc import Callable

from assay.workload import Workload


def shrink(workload: Workload, fails: Callable[[Workload], bool], seconds: float = 20.0) -> Workload:
    """Return the smallest workload found within `seconds` that still fails."""
    op = workload.op
    deadline = time.monotonic() + seconds
    known: dict[Workload, bool] = {}

    def still(candidate: Workload) -> bool:
        if candidate not in known:
            known[candidate] = candidate.allowed and time.monotonic() < deadline and fails(candidate)
        return known[candidate]

    changed = True
    while changed and time.monotonic() < deadline:
        before = workload
        for simpler in (
            {"values": "normal"},
            {"offset": 0},
            {"strided": ()},
            {"scattered": ()},
            {"without": ()},
            {"inplace": False},
            {"seed": 0},
            {"attributes": tuple((n, a.default) for n, a in op.attributes.items())},
        ):
            candidate = workload.replace(**simpler)
            if candidate != workload and still(candidate):
                workload = candidate
        for name, axis in op.axes.items():
            workload = _shorten(workload, name, axis.min, still)
        changed = workload != before
    return workload


def _shorten(workload: Workload, name: str, low: int, still: Callable[[Workload], bool]) -> Workload:
    """Shorten one axis to its smallest size that still fails: one of the three least if possible, else by bisection."""

    def at(size: int) -> Workload:
        return workload.replace(axes=tuple((n, size if n == name else v) for n, v in workload.axes))

    passes, fails = low - 1, dict(workload.axes)[name]
    for quick in (low, low + 1, low + 2):
        if quick < fails and still(at(quick)):
            return at(quick)
    while fails - passes > 1:
        middle = (passes + fails) // 2
        if still(at(middle)):
            fails = middle
        else:
            passes = middle
    return at(fails)
