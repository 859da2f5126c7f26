"""One workload through one worker. A large one takes one call, and is judged in slices."""

from __future__ import annotations

import contextlib

from assay.check.calls import Trial
from assay.check.outcome import Conditions, Outcome
from assay.check.slices import HUGE
from assay.check.turn import Turn
from assay.kernel import Kernel
from assay.worker import Worker
from assay.workload import Workload

LARGE = 1 << 21
"""Elements from which a workload runs once and is judged in slices, where its results are independent along an axis."""
_ONE_AT_A_TIME = Turn()
"""Two huge workloads at once would not fit into memory."""


def run(worker: Worker, kernel: Kernel, workload: Workload, conditions: Conditions) -> Outcome:
    """Try one workload and return its outcome."""
    elements = workload.elements
    with _ONE_AT_A_TIME if elements > HUGE else contextlib.nullcontext():
        return Trial(worker, kernel, workload, conditions, elements > LARGE).outcome()
