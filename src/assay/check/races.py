"""Looks for races while a GPU kernel is checked, with racecheck and with delays in the kernel's code: if a barrier is
missing, every call of a test may be right, and one in a million wrong."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial

from assay.check import racecheck
from assay.check.delayed import LANGUAGES, Delayed, chosen
from assay.check.evidence import CheckEvidence, Delays, Racecheck
from assay.check.outcome import Conditions
from assay.dtype import DType
from assay.kernel import Kernel
from assay.op import Op
from assay.record import Record, Status
from assay.worker import Pool
from assay.workload import Workload

Join = Callable[[Record], Record]
"""Adds the reports to a record that passed: a race is a failure."""
Report = tuple[Racecheck | Delays, str]
"""The evidence, and a description of the race or "" if none is certain."""
_GLANCE = 0.25
"""Seconds between two checks whether to stop."""
_begun: set[object] = set()
_lock = threading.Lock()


def beside(
    kernel: Kernel,
    op: Op,
    dtype: DType,
    workload: Workload | None,
    pool: Pool,
    conditions: Conditions,
    run: str,
    seed: int = 0,
    deadline: float | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Join:
    """Start looking for races in threads, and return a function that joins them. If one run checks a kernel in several
    dtypes, racecheck, which takes long, runs in the first one alone, unless a workload is named. The reports of a run
    that was `stopped` are not waited for."""
    looks: list[Callable[[], Report]] = []
    if not kernel.peer and conditions.here.device == "cuda":
        if racecheck.applies(kernel) and (workload or _first(kernel, run)):
            left = math.inf if deadline is None else deadline - time.monotonic()
            seconds = max(1.0, min(left, racecheck.SECONDS))
            on = workload or Workload.of(op, f"dtype={dtype}")
            looks.append(partial(racecheck.look, kernel, on, conditions.parameters, seconds, stopped))
        if kernel.address.backend in LANGUAGES:
            points = [workload] if workload else chosen(kernel, op, dtype, seed)
            looks.append(partial(Delayed(kernel, pool, conditions).look, points, deadline))
    threads = ThreadPoolExecutor(max(1, len(looks)))
    reports = [threads.submit(look) for look in looks]
    threads.shutdown(wait=False)

    def joined(record: Record) -> Record:
        if record.status is Status.PASS:
            for report in reports:
                while not stopped() and not wait([report], _GLANCE).done:
                    pass
                if not stopped():
                    record = _with(record, *report.result())
        return record

    return joined


def _with(record: Record, seen: Racecheck | Delays, race: str) -> Record:
    """Return the record with the evidence. A race is a failure; the first one is its reason."""
    evidence = CheckEvidence.of(record)
    if isinstance(seen, Racecheck):
        evidence = replace(evidence, racecheck=seen)
    else:
        evidence = replace(evidence, delays=seen)
    if not race or record.status is Status.FAIL:
        return replace(record, evidence=evidence.to_dict())
    evidence = replace(evidence, detector="race")
    return replace(record, status=Status.FAIL, reason=f"race: {race}", evidence=evidence.to_dict())


def _first(kernel: Kernel, run: str) -> bool:
    with _lock:
        known = (kernel.address, kernel.home, run)
        new = known not in _begun
        _begun.add(known)
    return new
