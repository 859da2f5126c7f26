"""Runs compute-sanitizer's racecheck: beside the check of a kernel that uses shared memory, where a missing barrier is
right nearly always; and where a result is right in one call and wrong in another, which may be a race."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from assay import sanitize
from assay.backends.nvrtc import HEADERS
from assay.catalog import source
from assay.check.evidence import CheckEvidence, Racecheck
from assay.dtype import DType
from assay.errors import AssayError
from assay.kernel import Kernel
from assay.op import Op
from assay.record import Record, Status
from assay.workload import Workload

Join = Callable[[Record], Record]
"""Adds racecheck's report to a record."""
_SHARED = ("__shared__", "shared.array")
_ASYNCHRONOUS = ("mbarrier", "cp.async.bulk", "cuda::barrier", "cuda::pipeline")
"""Words of a source that copies in the background and counts arrivals in shared memory: racecheck reports races between
the accesses that this orders (layernorm_backward/cuda on an H200), so such a report is evidence and no verdict."""
_SECONDS = 60.0
_MOST = 1 << 24
"""Elements of the workload: its inputs are drawn on the CPU."""
_begun: set[object] = set()
_lock = threading.Lock()


def looked_for(record: Record, kernel: Kernel, op: Op, parameters: Mapping[str, Any]) -> Record:
    """`record`, with racecheck's report if the result is unstable and racecheck can run here."""
    if record.detector != "unstable" or sanitize.why_not(kernel)[0]:
        return record
    report = _report(kernel, Workload.of(op, record.workload), parameters)
    reason = f"{record.reason}; racecheck: {report.problems[0]}" if report.problems else record.reason
    return replace(record, reason=reason, evidence=_evidence(record, report).to_dict())


def beside(
    kernel: Kernel,
    op: Op,
    dtype: DType,
    workload: Workload | None,
    parameters: Mapping[str, Any],
    run: str,
    seconds: float = _SECONDS,
) -> Join:
    """Starts racecheck in a thread, for at most so many seconds, on the workload or on the typical one; for a kernel
    that one run checks in several dtypes in the first one alone. What is returned adds the report to a record that
    passed: a race is a failure."""
    if not _worth_it(kernel) or (workload is None and not _first(kernel, run)):
        return lambda record: record
    thread = ThreadPoolExecutor(1)
    on = workload or _shortened(Workload.of(op, f"dtype={dtype}"))
    report = thread.submit(_report, kernel, on, parameters, max(1.0, min(seconds, _SECONDS)))
    thread.shutdown(wait=False)

    def joined(record: Record) -> Record:
        if record.status is not Status.PASS:
            return record
        found = report.result()
        evidence = _evidence(record, found)
        certain = [p for p in found.problems if p.text.startswith("Error") and not _has(kernel, _ASYNCHRONOUS)]
        if not certain:
            return replace(record, evidence=evidence.to_dict())
        what = f"race: {certain[0]}: right in all calls, by luck; put a barrier between the two accesses"
        return replace(record, status=Status.FAIL, reason=what, evidence=replace(evidence, detector="race").to_dict())

    return joined


def _worth_it(kernel: Kernel) -> bool:
    if kernel.peer or kernel.address.backend not in ("cuda", "cupy", "numba") or sanitize.why_not(kernel)[0]:
        return False
    return _has(kernel, _SHARED)


def _has(kernel: Kernel, words: tuple[str, ...]) -> bool:
    return any(word in text for text in source.texts(kernel.file, HEADERS) for word in words)


def _first(kernel: Kernel, run: str) -> bool:
    with _lock:
        known = (kernel.address, kernel.home, run)
        new = known not in _begun
        _begun.add(known)
    return new


def _shortened(workload: Workload) -> Workload:
    """Along the axis of independent results, until it is small enough; else the longest one."""
    while workload.elements > _MOST:
        sizes = dict(workload.axes)
        axis = workload.op.independent or max(sizes, key=lambda name: sizes[name])
        shorter = replace(workload, axes=tuple((n, size // 2 if n == axis else size) for n, size in workload.axes))
        if not shorter.allowed or shorter.elements >= workload.elements:
            break
        workload = shorter
    return workload


def _report(
    kernel: Kernel, workload: Workload, parameters: Mapping[str, Any], seconds: float = _SECONDS
) -> sanitize.Report:
    try:
        return sanitize.run(kernel, workload, "racecheck", parameters=dict(parameters), seconds=seconds)
    except AssayError as error:
        return sanitize.Report("racecheck", (), str(error))


def _evidence(record: Record, report: sanitize.Report) -> CheckEvidence:
    racecheck = Racecheck(report.clean, [str(p) for p in report.problems], report.trouble)
    return replace(CheckEvidence.of(record), racecheck=racecheck)
