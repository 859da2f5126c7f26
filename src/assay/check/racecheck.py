"""Runs compute-sanitizer's racecheck on kernels that use shared memory, since results are nearly always right when a
barrier is missing, and on kernels whose result is right in one call and wrong in another, which may be a race."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from assay import sanitize
from assay.backends.nvrtc import HEADERS
from assay.catalog import source
from assay.check.evidence import CheckEvidence, Racecheck
from assay.errors import AssayError
from assay.kernel import Kernel
from assay.op import Op
from assay.record import Record
from assay.workload import Workload

SECONDS = 60.0
"""The most seconds that racecheck may take."""
_SHARED = ("__shared__", "shared.array")
_ASYNCHRONOUS = ("mbarrier", "cp.async.bulk", "cuda::barrier", "cuda::pipeline")
"""Words in a source that copies asynchronously and counts arrivals in shared memory. racecheck reports races between
the accesses that this orders (layernorm_backward/cuda on an H200), so such a report is evidence and no verdict."""
_MOST = 1 << 24
"""The most elements of the workload, because its inputs are drawn on the CPU."""


def explained(record: Record, kernel: Kernel, op: Op, parameters: Mapping[str, Any]) -> Record:
    """Return the record, with racecheck's report if the result is unstable and racecheck can run here."""
    if record.detector != "unstable" or sanitize.why_not(kernel)[0]:
        return record
    report = _report(kernel, Workload.of(op, record.workload), parameters, SECONDS)
    reason = f"{record.reason}; racecheck: {report.problems[0]}" if report.problems else record.reason
    evidence = replace(CheckEvidence.of(record), racecheck=_evidence(report))
    return replace(record, reason=reason, evidence=evidence.to_dict())


def applies(kernel: Kernel) -> bool:
    """True if the kernel's author manages shared memory and racecheck can run here."""
    if kernel.address.backend not in ("cuda", "cupy", "numba") or sanitize.why_not(kernel)[0]:
        return False
    return _has(kernel, _SHARED)


def look(
    kernel: Kernel,
    workload: Workload,
    parameters: Mapping[str, Any],
    seconds: float = SECONDS,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[Racecheck, str]:
    """Return the report on the workload, shortened if it is large, and a description of the race or "" if not
    certain."""
    report = _report(kernel, _shortened(workload), parameters, seconds, stopped)
    certain = [p for p in report.problems if p.text.startswith("Error") and not _has(kernel, _ASYNCHRONOUS)]
    advice = "right in all calls, by luck; put a barrier between the two accesses"
    return _evidence(report), f"{certain[0]}: {advice}" if certain else ""


def _has(kernel: Kernel, words: tuple[str, ...]) -> bool:
    return any(word in text for text in source.texts(kernel.file, HEADERS) for word in words)


def _shortened(workload: Workload) -> Workload:
    """Shorten the axis of independent results, or else the longest one, until the workload is small enough."""
    while workload.elements > _MOST:
        sizes = dict(workload.axes)
        axis = workload.op.independent or max(sizes, key=lambda name: sizes[name])
        shorter = replace(workload, axes=tuple((n, size // 2 if n == axis else size) for n, size in workload.axes))
        if not shorter.allowed or shorter.elements >= workload.elements:
            break
        workload = shorter
    return workload


def _report(
    kernel: Kernel,
    workload: Workload,
    parameters: Mapping[str, Any],
    seconds: float,
    stopped: Callable[[], bool] = lambda: False,
) -> sanitize.Report:
    given = dict(parameters)
    try:
        return sanitize.run(kernel, workload, "racecheck", parameters=given, seconds=seconds, stopped=stopped)
    except AssayError as error:
        return sanitize.Report("racecheck", (), str(error))


def _evidence(report: sanitize.Report) -> Racecheck:
    return Racecheck(report.clean, [str(p) for p in report.problems], report.trouble)
