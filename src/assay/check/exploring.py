"""Tries the planned workloads of one kernel and dtype, cheap ones first, and shrinks a failing one."""

import contextlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import psutil

from assay import coverage
from assay.backends import Availability, Level
from assay.backends.base import TOO_MANY
from assay.catalog.asked import memory_needed
from assay.catalog.signature import with_default
from assay.check import launch_sites, trial
from assay.check.ahead import Ahead
from assay.check.explaining import beside_pytorch
from assay.check.judge import Finding
from assay.check.outcome import Conditions, Outcome
from assay.check.plain import VENDOR
from assay.check.seen import Seen
from assay.check.shrink import shrink
from assay.coverage import Effort, Planned, branches, constants
from assay.coverage.contract import PAST
from assay.dtype import DType, dtype
from assay.errors import SourceError, Unsupported
from assay.kernel import Kernel
from assay.op import Op
from assay.target import Target
from assay.worker import Pool, Worker
from assay.workload import Workload

EFFORTS = {
    "cuda": Effort(100, 1 << 17, 1 << 20, 1 << 23, 24, at_length=6, longer=1 << 22, huge=1 << 27),
    "cuda, triton": Effort(60, 1 << 17, 1 << 20, 1 << 23, 24, at_length=4, longer=1 << 22, huge=1 << 27),
    "cuda, inductor": Effort(30, 1 << 17, 1 << 20, 1 << 23, 24, related=6, huge=1 << 27, again=0),
    "native": Effort(150, 1 << 16, 1 << 19, 1 << 23, 30, at_length=4, longer=1 << 21),
    "native, inductor": Effort(18, 1 << 16, 1 << 19, 1 << 23, 4, related=3, again=0),
    "triton-interpret": Effort(30, 1 << 12, 1 << 18, 1 << 21, 14, problems=32, again=8),
    "numba-sim": Effort(18, 1 << 8, 2304, 1 << 10, 6, problems=32, again=6),
}
"""The budget by where a kernel runs. Triton and inductor compile anew for most workloads, which takes longer than
everything else: layernorm/triton was compiled 117 times for 130 workloads, 40 of 51 seconds; attention/inductor took 11
minutes on a CPU."""
_THOROUGH = 8
_PAST_32_BITS = ("cuda", "cuda, triton")
"""Places where a thorough check also tries more elements than 32 bits can index, which takes some 20 seconds."""
_WORK = (160_000, 4_800_000)
"""Operations that Triton's interpreter may do for all workloads of a kernel and dtype, usually and in a thorough check.
It counts them in the first call on each workload; with all calls they take some 10 or 300 processor seconds. A busy
machine needs more seconds for them, but not more operations."""
_OWN_SECONDS = {"triton-interpret": (30.0, 900.0), "numba-sim": (15.0, 300.0), "native, inductor": (60.0, 300.0)}
"""Processor seconds for the same in Numba's simulator, and in torch.compile, which on a CPU compiles C++ for seconds
whenever sizes or attributes are of another kind. Triton's interpreter gets three times what the operations take."""
_FOR_PAIRS = 2 / 3
"""The share of this after which workloads for pairs are left out; the rest is for others, such as those around
the kernel's own constants, which are often the most expensive."""
_FOR_CONSTANTS, _FEW = (1, 2), 4
"""The same for workloads around the kernel's own constants, first in general, then for those with few independent
results, each of which may be a program: they alone reach the third round of its loops."""
_FOR_FEW = {"masked": 3 / 2, "launch": 3 / 2}
"""The same for a few workloads that show what no others do, and come when these may have used up the rest."""
_OUTSIDE = 5.0
"""Seconds for a workload that is only reported: a loop may not end on values that the op excludes."""
_NO_ROOM = {"memory", "OutOfMemoryError"}
"""A detector and an exception: the machine or its GPU has too little memory."""
_PROGRAMS = {"default": 1 << 11, "thorough": 1 << 17}
"""The most programs that an interpreter runs in one launch."""
_COMING_BACK = 4
"""If the number of workloads is given, at most one for this many of them repeats earlier sizes."""
_AT_LENGTH = 8
"""The same for workloads of the typical sizes with other values."""
_TINY = 512
"""The cost up to which a kernel that does not end fails: a slow interpreter does not explain it."""
_DEEP, _USUAL, _OFTEN = 3, 8, 0.15
"""How many workloads are examined most closely, how many first ones have five calls, and what share of the rest has."""
_TELLING = 64
"""The least number of elements that is worth a close examination."""
_LACKING = "is not interpreted: run this kernel on a GPU"
"""Part of the message of an exception: the interpreter lacks a feature, and the kernel may still be correct."""
_WHOLE = ("timeout", "memory", "flood", "state")
"""Detectors of failures that are not shrunk: too slow, or the result of several workloads."""
_WRONG = ("values", "nonfinite", "unwritten")
"""Detectors of failures that may come from the state that an earlier call left."""
_ALIKE = 4
"""The most earlier workloads of the same sizes that are tried as the source of that state."""


@dataclass(frozen=True)
class Bounds:
    """The bounds of an exploration besides its plan."""

    workloads: int | None = None
    """The number of workloads, if not the usual one."""
    thorough: bool = False
    sizes: tuple[int, ...] = ()
    """Axis lengths to try besides all others."""
    seed: int = 0
    deadline: float | None = None
    """The end of the whole run, on the monotonic clock."""

    def effort(self, where: str) -> Effort:
        usual = EFFORTS[where]
        if self.thorough:
            usual = replace(usual.times(_THOROUGH), past_32_bits=where in _PAST_32_BITS)
        if self.workloads is None:
            return usual
        most = self.workloads
        return replace(
            usual,
            workloads=most,
            constants=min(usual.constants, most),
            at_length=min(usual.at_length, most // _AT_LENGTH),
            again=min(usual.again, most // _COMING_BACK),
        )


class Exploration:
    """One kernel in one dtype."""

    def __init__(
        self,
        kernel: Kernel,
        op: Op,
        dtype: DType,
        pool: Pool,
        worker: Worker | None,
        conditions: Conditions,
        stopped: Callable[[], bool],
    ) -> None:
        self.kernel, self.op, self.dtype, self.pool = kernel, op, dtype, pool
        self.conditions, self.stopped = conditions, stopped
        self.worker = worker
        self.seen = Seen()
        self._deep, self._chance = 0, random.SystemRandom()
        self._programs = 1 << 62
        self._own = 0.0
        """Processor seconds of the workers so far."""
        self._work = 0
        """Operations that the interpreter has counted."""
        self._deadline: float | None = None
        self._ahead = Ahead(kernel, conditions) if conditions.here.device == "cuda" else None
        self._compared: tuple[int, ...] = ()
        """Integers that the PTX of the first launch compares registers with."""

    @property
    def here(self) -> Availability:
        return self.conditions.here

    def attempt(self, workload: Workload, depth: str = "deep", until: float | None = None) -> Outcome:
        """Try one workload, in a worker that is started if there is none."""
        worker = self.worker or self.pool.worker(self.kernel.address.backend, self.here.mode)
        self.worker = worker
        before = _processor_seconds(worker)
        conditions = replace(self.conditions, depth=depth, programs=self._programs, until=until or self._deadline)
        prepared = self._ahead.take(workload) if self._ahead else None
        outcome = trial.run(worker, self.kernel, workload, conditions, prepared)
        self._own += _processor_seconds(worker) - before
        self._work += outcome.work
        self._compared = self._compared or outcome.compared
        if outcome.lost:
            worker.close()
            self.worker = None
        wrong = outcome.torch_wrong
        own = wrong not in VENDOR.values() or self.kernel.address.backend == "torch"
        if outcome.finding is None or not wrong or not own or self.kernel.peer:
            return outcome
        return replace(outcome, finding=beside_pytorch(outcome.finding, wrong))

    def close(self) -> None:
        if self._ahead:
            self._ahead.close()

    def one(self, workload: Workload) -> None:
        """Try this workload alone."""
        self._look(Planned(workload, "named", cost=workload.elements))

    def run(self, bounds: Bounds, target: Target) -> None:
        """Try the planned workloads until one fails or a bound is reached, and at last those that lead to launches
        which no planned one has led to."""
        where = self._where()
        self._deadline = bounds.deadline
        omittable = [n for n, t in self.op.outputs.items() if t.optional and n in with_default(self.kernel)]
        self._programs = _PROGRAMS["thorough" if bounds.thorough else "default"]
        effort = bounds.effort(where)
        dtypes = [dtype(name) for name in self.kernel.dtypes or self.op.dtypes]
        narrowest = min(dtypes, key=lambda number: number.itemsize, default=self.dtype)
        effort = replace(effort, past_32_bits=effort.past_32_bits and self.dtype == narrowest)
        read: tuple[int, ...] | None = None
        rows: list[Planned] = []
        while True:
            if read != self._compared:  # at first, and again after a launch has shown the constants of its PTX
                read = self._compared
                known = constants.of(self.kernel, read, branches.bounds(self.kernel, self.op)).beside(self.op)
                plan = coverage.plan(self.op, self.dtype, effort, bounds.seed, known, bounds.sizes, omittable, dtypes)
                tried = {str(row.workload) for row in self.seen.tried}
                rows = [row for row in plan.rows if str(row.workload) not in tried]
                self.seen.plan = plan
                continue
            if not rows:
                if self.seen.launch_sites or bounds.workloads is not None or self._late() or self.stopped():
                    return
                rows = self._missed_launches(plan, effort, bounds.seed, omittable, target)
                continue
            if self._late():
                self.seen.leave_out("the time limit", rows)
                return
            if self.stopped():
                return
            row = rows.pop(0)
            if self._ahead and rows:
                self._ahead.begin(rows[0].workload)
            if row.why == PAST and memory_needed(row.workload) > psutil.virtual_memory().available:
                self.seen.leave_out("more memory than this machine has free", [row])
            elif self._too_slow(row, bounds) and row.why != "typical":
                self.seen.leave_out(f"too slow in {self._place()}", [row])
            elif self._look(row):
                self._look_for_state()
                return

    def _missed_launches(
        self, plan: coverage.Plan, effort: Effort, seed: int, omittable: list[str], target: Target
    ) -> list[Planned]:
        """Add workloads that lead to launches which few or none of those tried so far have led to."""
        parameters = self.conditions.parameters
        self.seen.launch_sites = launch_sites.find(
            self.kernel, self.op, self.dtype, self.seen.tried, effort, seed, omittable, parameters, target, self.pool
        )
        plan.rows += self.seen.launch_sites.added
        return list(self.seen.launch_sites.added)

    def outside(self, workload: Workload) -> None:
        """Try a workload beyond the declared range, which is never judged, for a few seconds. The reference may raise
        there, too."""
        with contextlib.suppress(SourceError):
            if not self._late():
                self.seen.beyond = self.attempt(workload, until=time.monotonic() + _OUTSIDE).beyond

    def _late(self) -> bool:
        return self._deadline is not None and time.monotonic() > self._deadline

    def _where(self) -> str:
        """Return the key of EFFORTS for this kernel."""
        place = "cuda" if self.here.device == "cuda" else self.here.mode
        own = f"{place}, {self.kernel.address.backend}"
        return own if own in EFFORTS else place

    def _look(self, row: Planned) -> bool:
        """Try a planned workload; return True if it failed."""
        if row.before:
            self.attempt(row.before, "lean")
        outcome = self.attempt(row.workload, self._depth(row))
        finding = outcome.finding
        if finding and self.kernel.peer and outcome.detail.get("type") == Unsupported.__name__:
            self.seen.refuse(outcome.detail["what"], row)
            return False
        if finding and row.why == PAST and _NO_ROOM & {finding.detector, outcome.detail.get("type")}:
            self.seen.leave_out("more memory than this GPU has free", [row])
            return False
        if finding and outcome.hurried:
            self.seen.leave_out("the time limit", [row])
            return False
        if finding and finding.detector == "timeout" and self._interpreted and row.cost > _TINY:
            self.seen.leave_out(f"too slow in {self._place()}", [row])
            return False
        if finding and self._interpreted and finding.detector == "exception" and TOO_MANY in finding.what:
            self.seen.limit(f"more programs than {self._place()} runs", row)
            return False
        if finding and self._interpreted and finding.detector == "exception" and _LACKING in finding.what:
            self.seen.leave_out(f"{self._place()} lacks a function that it calls", [row])
            return False
        self.seen.workloads += 1
        self.seen.tried.append(row)
        self.seen.add(row.workload, outcome)
        if finding:
            excuse = outcome.torch_wrong if self.kernel.peer else ""
            self.seen.failure = (row.workload, replace(outcome, torch_wrong=excuse))
        return finding is not None

    def _look_for_state(self) -> None:
        """Change the failure to `state` if the workload is right in a fresh process and fails after one of the earlier
        ones: those of the same sizes, the largest, the last. Then the cause is what the kernel keeps between calls."""
        assert self.seen.failure is not None
        workload, outcome = self.seen.failure
        *others, failed = self.seen.tried
        finding, earlier = outcome.finding, [row.workload for row in others]
        if failed.before:
            earlier.append(failed.before)
        if finding is None or finding.detector not in _WRONG or not earlier:
            return
        self._renew()
        if self.attempt(workload).finding:
            return
        alike = [one for one in reversed(earlier) if one.axes == workload.axes][:_ALIKE]
        largest = max(earlier, key=lambda one: one.elements)
        for suspect in dict.fromkeys([*alike, largest, earlier[-1]]):
            self._renew()
            self.attempt(suspect, "lean")
            if self.attempt(workload, "lean").finding:
                kept = "what the kernel keeps between calls (compiled code, a plan, a buffer) does not fit this one"
                what = f"right in a fresh process, wrong after {suspect}: {kept}; {finding.what}"
                self.seen.failure = workload, replace(outcome, finding=Finding("state", what))
                return

    def _renew(self) -> None:
        """End the worker, so that the next workload gets a fresh process."""
        if self.worker is not None:
            self.worker.close()
            self.worker = None

    def _depth(self, row: Planned) -> str:
        """Return the depth for the next workload. A kernel cannot predict which later ones are examined closely."""
        elements = row.workload.elements
        if self._interpreted and row.why == "typical":
            return "lean"
        if row.why == "named" or (self._deep < _DEEP and elements >= _TELLING):
            self._deep += 1
            return "deep"
        few = self.seen.workloads < _USUAL or row.why == "near typical"
        return "usual" if few or self._chance.random() < _OFTEN else "lean"

    @property
    def _interpreted(self) -> bool:
        return self.here.level is Level.INTERPRET

    def _place(self) -> str:
        if not self._interpreted:
            return "torch.compile"
        return "Triton's interpreter" if self.here.mode == "triton-interpret" else "Numba's simulator"

    def _too_slow(self, row: Planned, bounds: Bounds) -> bool:
        """True if the work or the processor time for such rows, which come in order of their cost, is used up."""
        usual = _OWN_SECONDS.get(self._where())
        if usual is None or not self.seen.tried:
            return False
        share: float = {"pairs": _FOR_PAIRS, **_FOR_FEW}.get(row.why, 1)
        if row.why.startswith("constant"):
            share = _FOR_CONSTANTS[row.workload.named.get(self.op.independent, _FEW) <= _FEW]
        return self._work > share * _WORK[bounds.thorough] or self._own > share * usual[bounds.thorough]

    def smaller(self, finding: Finding) -> tuple[Workload, Finding]:
        """Return the smallest workload nearby that fails in the same way, and what is wrong with it."""
        assert self.seen.failure is not None
        workload, outcome = self.seen.failure
        if finding.detector in _WHOLE:
            return workload, finding
        latest = {workload: outcome}

        def same(candidate: Workload) -> bool:
            latest[candidate] = self.attempt(candidate)
            again = latest[candidate].finding
            return again is not None and again.detector == finding.detector

        smallest = shrink(workload, same)
        return smallest, latest[smallest].finding or finding


def _processor_seconds(worker: Worker) -> float:
    """Return the processor seconds of a worker and of the compilers it has called. Wall time depends on other
    processes."""
    try:
        used = psutil.Process(worker.pid).cpu_times()
    except psutil.Error:
        return 0.0
    return float(used.user + used.system + used.children_user + used.children_system)
