"""Computes the right answers for the next workload while the kernel runs on this one."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from assay.check.case import Case
from assay.check.outcome import Conditions
from assay.check.trial import LARGE
from assay.kernel import Kernel
from assay.worker.request import Call
from assay.workload import Workload


class Ahead:
    """Computes in one thread. This saves time for a kernel on a GPU: it and the judge need not wait for each other."""

    def __init__(self, kernel: Kernel, conditions: Conditions) -> None:
        self._kernel, self._conditions = kernel, conditions
        self._thread = ThreadPoolExecutor(1, "ahead")
        self._begun: dict[Workload, Future[Case]] = {}

    def begin(self, workload: Workload) -> None:
        if workload.elements <= LARGE and not workload.op.random and workload.values != "beyond":
            self._begun = {w: self._begun[w] for w in list(self._begun)[-1:]}  # an older one was planned and dropped
            self._begun[workload] = self._thread.submit(self._prepared, workload)

    def take(self, workload: Workload) -> Case | None:
        """Return the case of a workload that was begun; None for any other."""
        begun = self._begun.pop(workload, None)
        return begun.result() if begun else None

    def close(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _prepared(self, workload: Workload) -> Case:
        conditions = self._conditions
        layout = Call.of(self._kernel, workload, conditions.here.mode, conditions.parameters)
        case = Case.of(workload, layout, conditions)
        case.prepare()
        return case
