"""Calls a kernel on a GPU while its warps wait at random before they access memory (isa.ptx.delays). A result that is
right in all other calls and wrong in these shows a race of any kind: between warps or between blocks, in shared memory
or in global memory."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace

from assay import coverage
from assay.backends.nvrtc import HEADERS
from assay.catalog import source
from assay.check import trial
from assay.check.evidence import Delays
from assay.check.outcome import Conditions, Outcome
from assay.coverage import Effort, branches, constants
from assay.coverage.constants import Bound
from assay.dtype import DType
from assay.errors import AssayError
from assay.kernel import Kernel
from assay.op import Op
from assay.worker import Pool, Worker, WorkerLost
from assay.workload import Workload

LANGUAGES = ("cuda", "triton", "cupy", "numba")
_EFFORT = Effort(40, 1 << 14, 1 << 16, 1 << 20, 12)
_LEAST, _MOST = 1 << 8, 1 << 17
"""The least and the most elements of a small workload: several warps, and little work for the oracle."""
_SMALL, _STRETCHED, _BRANCHES = 5, 3, 2
"""The most workloads of each kind, besides the typical one."""
_EVERY, _VECTOR = 1 << 27, 8
"""The most elements of a workload in which every block goes on to further ones, and the length of its other axes: that
of a vector of 16 bytes, for which a kernel has its fast code."""
_LONG = 1 << 14
"""The least length of one axis of a stretched workload, which has up to trial.DELAYED elements: more tiles than a GPU
runs blocks at a time, each of several warps, so that blocks that loop over tiles take more than one."""
_COMMUNICATES = re.compile("__shared__|shared.array|atomic|shfl|syncwarp|syncthreads|volatile|fence|barrier")
"""Words in sources whose threads exchange values. Headers are searched too, so there may be false positives."""
_RESULTS = ("values", "nonfinite", "unwritten", "stale", "unstable", "guard", "input", "launch")
"""Detectors of a wrong result, or of a missing one because the device refused what the kernel did. An exception is not
among them: the code with delays is larger and may no longer fit."""
_HANGS = "timeout"
"""Detector of a kernel that does not end: a thread that is late misses the phase of a barrier that it waits for."""
_SECONDS = 30.0
"""Seconds of its own time for one call. Without a race it takes less than one."""
_AGAIN = 2
"""The multiple of these that a call which did not end gets when it is repeated: other work on the GPU delays it too."""
_UNCHANGED = "nothing was built that could be changed"


@dataclass(frozen=True)
class Delayed:
    """One kernel with delays in its code."""

    kernel: Kernel
    pool: Pool
    conditions: Conditions

    def look(self, workloads: list[Workload], deadline: float | None = None) -> tuple[Delays, str]:
        """Return what the calls showed, and a description of the race or "" if none is certain."""
        seen = self._seen(workloads, deadline)
        what = "wrong when its warps wait at random before they access memory"
        advice = "something is read too early or overwritten too early: a barrier or a fence is missing"
        return seen, "" if seen.clean else f"{what}, {seen.problem}; {advice}"

    def _seen(self, workloads: list[Workload], deadline: float | None) -> Delays:
        tried: list[str] = []
        codes = 0
        try:
            worker = self._worker()
            try:
                for one in workloads:
                    if deadline is not None and time.monotonic() > deadline:
                        return Delays(True, tried, codes, trouble="the time limit")
                    outcome = self._call(worker, one, "random")
                    tried.append(str(one))
                    codes = max(codes, outcome.delayed)
                    if outcome.finding or not codes:
                        return self._explained(outcome, one, tried, codes)
            finally:
                worker.close()
        except Exception as error:  # no error here may discard the verdict of the other calls
            words = str(error) if isinstance(error, AssayError | WorkerLost) else f"{type(error).__name__}: {error}"
            return Delays(True, tried, codes, trouble=words)
        return Delays(True, tried, codes)

    def _explained(self, outcome: Outcome, workload: Workload, tried: list[str], codes: int) -> Delays:
        """Report a wrong result, or a kernel that does not end, as a race unless the same code does that without
        waiting, too."""
        finding = outcome.finding
        if finding is None:
            return Delays(True, tried, codes, trouble=_UNCHANGED)
        if finding.detector not in (*_RESULTS, _HANGS):
            return Delays(True, tried, codes, trouble=finding.what)
        control = self._fresh(workload, "still")
        codes = max(codes, control.delayed)  # a worker that was lost has not told how many it changed
        if control.finding:
            return Delays(True, tried, codes, trouble=f"wrong without waiting, too: {control.finding.what}")
        if not codes:
            return Delays(True, tried, codes, trouble=_UNCHANGED)
        if finding.detector == _HANGS:
            finding = self._fresh(workload, "random", _AGAIN * _SECONDS).finding
        if finding is None:
            return Delays(True, tried, codes, trouble="it did not end in time once, and ended when it was called again")
        what = "it does not end" if finding.detector == _HANGS else finding.what
        return Delays(False, tried, codes, f"on {workload}: {what}")

    def _worker(self) -> Worker:
        return self.pool.worker(self.kernel.address.backend, self.conditions.here.mode)

    def _fresh(self, workload: Workload, kind: str, seconds: float = _SECONDS) -> Outcome:
        worker = self._worker()
        try:
            return self._call(worker, workload, kind, seconds)
        finally:
            worker.close()

    def _call(self, worker: Worker, workload: Workload, kind: str, seconds: float = _SECONDS) -> Outcome:
        conditions = replace(self.conditions, depth="delayed", delays=kind, seconds=seconds)
        return trial.run(worker, self.kernel, workload, conditions)


def chosen(kernel: Kernel, op: Op, dtype: DType, seed: int) -> list[Workload]:
    """Return the typical workload, shortened; if threads communicate, workloads with each axis long in turn, beyond the
    largest grids, and twice as long as the largest; and small ones. Nearly all of their values differ from one
    another."""
    bounds = branches.bounds(kernel, op)
    known = constants.of(kernel, (), bounds)
    rows = coverage.plan(op, dtype, _EFFORT, seed, known).rows
    typical = [row.workload for row in rows if row.why == "typical"]
    talk = any(_COMMUNICATES.search(text) for text in source.texts(kernel.file, HEADERS))
    longer = [_stretched(op, dtype, name, seed) for name in op.axes] if talk else []
    stretched = sorted(filter(None, longer), key=lambda w: -w.elements)
    limits = sorted((b for b in bounds if talk and b.size >= _LONG), key=lambda b: b.size)
    past = [_beyond(op, dtype, replace(b, size=b.size + 1), seed, 2, trial.DELAYED) for b in limits]
    beyond = [*filter(None, past)][:_BRANCHES]
    beyond += filter(
        None, (_beyond(op, dtype, replace(b, size=2 * b.size), seed, _VECTOR, _EVERY) for b in limits[-1:])
    )
    plain = {replace(row.workload, values="normal") for row in rows}
    small = sorted((w for w in plain if _LEAST <= w.elements <= _MOST), key=lambda w: (w.elements, str(w)))
    step = max(1, len(small) // _SMALL)
    long = [*stretched[:_STRETCHED], *beyond]
    return list(dict.fromkeys([*typical[:1], *long, *small[step - 1 :: step][:_SMALL]]))


def _stretched(op: Op, dtype: DType, name: str, seed: int) -> Workload | None:
    """Return the typical workload with one long axis and the others halved until it is small enough: their lengths stay
    multiples of powers of two, for which a kernel has its fast code."""
    workload = Workload.of(op, f"dtype={dtype},seed={seed}")
    axes = dict(workload.axes)
    axes[name] = max(axes[name], _LONG)
    while (longer := replace(workload, axes=tuple(axes.items()))).elements > trial.DELAYED:
        other = max((n for n in axes if n != name), key=lambda n: axes[n], default=name)
        other = name if axes[other] == 1 else other
        axes[other] //= 2
    return longer if longer.allowed else None


def _beyond(op: Op, dtype: DType, length: Bound, seed: int, others: int, most: int) -> Workload | None:
    """Return a workload with one axis of this length, longer than the launch's grid covers at once, and the others
    short."""
    workload = Workload.of(op, f"dtype={dtype},seed={seed}")
    sizes = {name: max(others, axis.min) for name, axis in op.axes.items()} | {length.axis: length.size}
    workload = replace(workload, axes=tuple(sizes.items()))
    return workload if workload.allowed and workload.elements <= most else None
