"""Tries one workload in one worker. A large one takes one call and is judged in slices."""

from __future__ import annotations

import contextlib

import psutil

from assay.check.calls import Trial
from assay.check.case import Case
from assay.check.outcome import Conditions, Outcome
from assay.check.slices import HUGE
from assay.check.turn import Turn
from assay.kernel import Kernel
from assay.worker import Worker
from assay.workload import Workload

LARGE = 1 << 21
"""Elements above which a workload runs once and, if its results are independent along an axis, is judged in slices."""
DELAYED = 5 << 20
"""The same for a kernel with delays in its code, of which one call shows little."""
_ONE_AT_A_TIME = Turn()
_PLENTY = 64 << 30
"""Bytes of free memory above which several huge workloads may run at once."""


def run(
    worker: Worker, kernel: Kernel, workload: Workload, conditions: Conditions, prepared: Case | None = None
) -> Outcome:
    """Try one workload and return its outcome. `prepared`: its first values, with the right answers."""
    elements = workload.elements
    crowded = elements > HUGE and psutil.virtual_memory().available < _PLENTY
    with _ONE_AT_A_TIME if crowded else contextlib.nullcontext():
        most = DELAYED if conditions.depth == "delayed" else LARGE
        return Trial(worker, kernel, workload, conditions, elements > most, prepared).outcome()
