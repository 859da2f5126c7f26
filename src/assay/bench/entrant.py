"""One kernel, or the yardsticks, on one workload: its worker, its samples and its failure, if any."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal, TypeVar

from assay import host
from assay.backends import Availability, backend
from assay.bench.clocks import claims_too_much, parent_clock
from assay.bench.evidence import ParentClock
from assay.bench.limit import BEYOND_CACHE
from assay.bench.processes import Processes, Role
from assay.bench.seats import Seats
from assay.bench.statistics import Estimate, estimate
from assay.bench.truth import Truth
from assay.check.judge import Finding
from assay.errors import Unsupported
from assay.inspect.build import launches
from assay.kernel import Kernel
from assay.worker import Worker, WorkerLost
from assay.worker.bits import bits, signed
from assay.worker.failure import Refused
from assay.worker.messages import Answer, Request
from assay.worker.questions import (
    Activity,
    Fetched,
    Observe,
    Prepare,
    Prepared,
    Repeat,
    Round,
    Time,
    Timed,
    TimeYardsticks,
    Uncapturable,
    Yardsticks,
)
from assay.worker.questions import Finding as Wrong
from assay.worker.request import Call

_TRANSIENT = 0.97
"""A batch timed below this share of the usual SM clock is set aside, unless more than `_MANY` of them are."""
_MANY = 1 / 3
A = TypeVar("A", bound=Answer)
BATCHES: Final[tuple[Literal["cold", "hot"], ...]] = ("cold", "hot")
"""Kinds of batches, in the order in which their fetched outputs lie in the arena."""
_SECONDS = 0.25
"""The most seconds that samples of one kind may take in a round."""
_KINDS = 3
"""Number of kinds of samples (cold, hot and single calls) that share a round's part of the budget."""
UNSUPPORTED = "unsupported"
"""The detector's name if a peer does not support the workload: the peer is skipped, not failed."""
YARDSTICKS = "yardsticks"
"""The identity of the copy, the read and the write, which are not kernels."""


@dataclass
class Entrant:
    name: str
    kernel: Kernel | None
    """None for the yardsticks."""
    here: Availability
    truth: Truth
    processes: Processes
    parameters: dict[str, Any] = field(default_factory=dict)
    tuned: str = ""
    """Source of the parameters, if tuned values were requested."""
    rounds: list[Timed | Yardsticks] = field(default_factory=list)
    """The worker's answers."""
    activity: Activity | str | None = None
    """The device's own record of what ran, or the reason why there is none."""
    parent_clock: ParentClock | None = None
    failure: Finding | None = None
    less_accurate: str = ""
    """For a peer: by how much a timed call exceeded the tolerance that applies to other kernels."""

    @property
    def identity(self) -> str:
        """The name of its process: kernels in two files may have the same address."""
        return self.kernel.identity if self.kernel else YARDSTICKS

    def measure(self, number: int) -> None:
        """Time one round, unless an earlier one failed."""
        if self.failure:
            return
        if self.kernel is None:
            moved = self.truth.workload.bytes
            answer = self._ask(TimeYardsticks(self._round, moved, BEYOND_CACHE))
            self.rounds += [answer] if answer else []
            return
        fetch, keep = self.truth.wants(number), self.truth.wants_parent_clock(number)
        began = time.perf_counter()
        timed = self._ask(replace(self._request(number), fetch=tuple(fetch), keep=keep))
        if isinstance(timed, Uncapturable):
            self.processes.uncapturable[self.identity] = timed.why
            self.seats.close("timed")
            began = time.perf_counter()
            timed = self._ask(replace(self._request(number), fetch=tuple(fetch), keep=keep))
        waited = time.perf_counter() - began
        if isinstance(timed, Wrong):
            self._fail(timed.detector, timed.what)
        if not isinstance(timed, Timed):
            return
        self.rounds.append(timed)
        self._judge(timed)
        if not self.failure and (why := claims_too_much(timed, waited)):
            self._fail("clock", why)
        if not self.failure and keep:
            with self.processes.spent.on("clocks"):
                self._take_parent_clock(timed.batch)

    def _judge(self, answer: Timed) -> None:
        """Judge the outputs that the round fetched, as `check` does."""
        for index, kind in enumerate(BATCHES):
            if not self.failure and (call := answer.fetched.get(kind)):
                outputs = self._outputs(index)
                with self.processes.spent.on("judge"):
                    finding = self.truth.judge(self.identity, call, outputs)
                if finding and self.kernel and finding.excused_in(self.kernel):
                    self.less_accurate = finding.what
                elif finding:
                    detector, what = self._unwritten(call, outputs) or (finding.detector, finding.what)
                    self._fail(detector, f"a timed call computed something else: {what}")

    def _unwritten(self, call: Fetched, outputs: dict[str, Any]) -> tuple[str, str] | None:
        """Return detector and reason if outputs are wrong because the call did not write all of them."""
        for spec in self._call.outputs:
            value = outputs[spec.name]
            left = int((bits(value) == signed(spec.poison[call.poison % 3], value.element_size())).sum())
            if left:
                return "unwritten", f"{left} of {value.numel()} elements of `{spec.name}` were not written"
        return None

    def _take_parent_clock(self, batch: int) -> None:
        """Let the worker run a batch again, timed by the parent's clock."""
        called = self.estimate("call").median if self.identity in self.processes.uncapturable else 0.0

        def ask(times: int) -> float:
            began = time.perf_counter()
            if not self.failure:
                self._ask(Repeat(times))
            return time.perf_counter() - began

        # Calls that cannot be captured are launched one by one, so the host's launch time counts here.
        clock = parent_clock(ask, batch * max(self.estimate().median, called))
        if self.failure:
            return
        self.parent_clock = clock
        ask(-1)
        if not clock.agrees:
            self._fail(
                "clock",
                f"its process says that {batch} calls take {clock.claimed * 1e6:.4g} µs, "
                f"the parent never waited less than {clock.waited * 1e6:.4g} µs for them",
            )

    def code(self) -> list[dict[str, Any]]:
        """Return the machine code that was timed: as its process reported it or, for CuPy, whose processes do not
        report it, as built for this device."""
        reported = [dict(summary) for summary in self.first.artifacts]
        if reported or self.kernel is None or self.here.device != "cuda" or self.kernel.address.backend != "cupy":
            return reported
        gpu = host.gpu()
        assert gpu is not None
        built = launches(self.kernel, self.truth.workload, gpu.target, self.processes.pool, self.parameters)
        certain = {one.artifact.text_hash: one.artifact for one in built if not one.artifact.doubt}
        return [a.summary() for a in certain.values()]

    @property
    def chosen(self) -> str:
        """For a peer: how it is run."""
        if self.kernel is None or not self.kernel.peer:
            return ""
        if self.kernel.needs:
            version = f"{self.kernel.needs} {host.version(self.kernel.needs)}"
            made = self.kernel.prepare
            return f"{version}, weights prepared once by {made}, outside the timing" if made else version
        where = self.kernel.address
        return backend(where.backend).chosen(self.here.mode, where.variant)

    @property
    def watchable(self) -> bool:
        return self._on_gpu and bool(self.rounds) and not self.failure

    @property
    def _on_gpu(self) -> bool:
        return self.kernel is not None and self.here.device == "cuda"

    def open(self, watched: bool) -> None:
        """Start its process and, if `watched`, the one that CUPTI watches. The processes of all entrants start in
        parallel, while the inputs are drawn."""
        self.seats.open("timed", *(("watched",) if watched and self._on_gpu else ()))

    def build(self, roles: Sequence[Role] = ("timed", "watched")) -> None:
        """Start building the kernel in its processes, which work in parallel."""
        for role in roles:
            self._hear(role)
            if self.kernel and role in self.seats.held:
                self._fill(self.seats.held[role])
                self.seats.tell(role, Prepare(self._request(0)))

    def built(self) -> None:
        """Wait until the builds are done."""
        for role in list(self.seats.held):
            answer = self._hear(role)
            if isinstance(answer, Prepared) and role == "timed":
                self.processes.first_calls.setdefault(self.identity, answer.first_call)

    def _hear(self, role: Role) -> Any:
        """Return the answer of a process. A timeout fails the entrant; any other failure occurs again in the first
        round, where the kernel has the machine to itself."""
        answer = self.seats.hear(role)
        if role == "timed" and isinstance(answer, WorkerLost) and answer.how == "timeout":
            self.failure = Finding(answer.how, answer.detail)
        return answer

    @property
    def tunes_itself(self) -> bool:
        """Whether its first call may time variants of the kernel, so that nothing else may use the GPU meanwhile."""
        return self._on_gpu and self.kernel is not None and backend(self.kernel.address.backend).tunes_itself

    def build_alone(self) -> None:
        """Build in one process after the other. The second one reuses what the first has compiled and chosen."""
        for role in list(self.seats.held):
            self.build((role,))
            self.built()

    def record_activity(self) -> None:
        """Take the device's own record of what ran, for as many calls as a batch has, between 8 and 64."""
        try:
            observe = Observe(self._request(0), max(8, min(64, self.first.batch)))
            self.activity = self.seats.worker("watched").ask(observe, self.processes.seconds)
        except (WorkerLost, Refused) as problem:
            self.activity = problem.detail if isinstance(problem, WorkerLost) else problem.failure.message
            self.seats.close("watched")

    @property
    def timed(self) -> list[Timed]:
        """The rounds in which a kernel was timed."""
        return [r for r in self.rounds if isinstance(r, Timed)]

    @property
    def first(self) -> Timed:
        return self.timed[0]

    def leave(self) -> None:
        """Return the healthy processes for the next workload."""
        self.seats.leave()

    @cached_property
    def seats(self) -> Seats:
        language = self.kernel.address.backend if self.kernel else "torch"
        return Seats(self.processes, self.identity, language, self.here.mode, self.here.device, self._fill)

    def _fill(self, worker: Worker) -> None:
        if self.kernel is None:
            return
        memory = worker.memory(self._call.arena)
        for spec in self._call.inputs:
            for index, values in enumerate(self.truth.drawn):
                spec.values(memory, index).copy_(values[spec.name])

    @property
    def _round(self) -> Round:
        threads, most_bytes = self.processes.threads, self.processes.most_bytes
        capture = self.identity not in self.processes.uncapturable
        seconds = min(_SECONDS, self.processes.round_seconds / _KINDS)
        samples, others = self.processes.samples, self.processes.others
        return Round(self.here.device, samples, others, seconds, threads, most_bytes, capture)

    @cached_property
    def _call(self) -> Call:
        """The call to compute, with the places of its inputs and outputs in the shared memory."""
        assert self.kernel is not None
        workload, count = self.truth.workload, self.truth.sets
        return Call.of(self.kernel, workload, self.here.mode, self.parameters, variations=count, runs=len(BATCHES))

    def _request(self, number: int) -> Time:
        """Return the request to time one round."""
        workload, count = str(self.truth.workload), self.truth.sets
        return Time(self._call, self._round, workload, number, count, tuple(self.truth.changeable))

    def _ask(self, request: Request[A]) -> A | None:
        """Return the answer of the timed process; without one, note the failure and return None."""
        try:
            return self.seats.worker("timed").ask(request, self.processes.seconds)
        except WorkerLost as lost:
            self._fail(lost.how, lost.detail)
        except Refused as refused:
            error = refused.failure
            if self.kernel and self.kernel.peer and error.type == Unsupported.__name__:
                self._fail(UNSUPPORTED, error.what)
            else:
                where = f" at {error.where}" if error.where else ""
                self._fail("exception", f"{error.type}: {error.what or error.message}{where}")
        return None

    def _fail(self, detector: str, what: str) -> None:
        """Note the failure and end the process: nothing it reports can be trusted any more."""
        self.failure = Finding(detector, what)
        self.seats.close("timed")

    def _outputs(self, index: int) -> dict[str, Any]:
        memory = self.seats.held["timed"].memory(self._call.arena)
        return {spec.name: spec.values(memory, index) for spec in self._call.outputs}

    def samples(self, kind: str) -> list[list[float]]:
        """Return the samples by round, without the batches that ran while the clock was briefly low."""
        whole: list[list[float]] = [getattr(r, kind) for r in self.rounds]
        usual = self.clock()
        if kind != "cold" or not usual:
            return whole
        kept = [
            [s for s, hz in zip(r.cold, r.sm_hz, strict=True) if not hz or hz >= _TRANSIENT * usual]
            for r in self.rounds
        ]
        lost = 1 - sum(map(len, kept)) / sum(map(len, whole))
        return [few or all_ for few, all_ in zip(kept, whole, strict=True)] if lost < _MANY else whole

    def own(self) -> Estimate:
        """Return the time that the kernel itself used: on a CPU its processor time, on which other processes have no
        influence."""
        return self.estimate("busy" if self.first.busy else "cold")

    def estimate(self, kind: str = "cold") -> Estimate:
        return estimate(self.samples(kind))

    def fastest(self) -> dict[str, tuple[float, int, str]]:
        """For the yardsticks: return the fewest seconds of a call, its bytes and its form, for copy, read and write."""
        kinds = ("copy", "read", "write")
        seen = {kind: [row for r in self.rounds if (row := getattr(r, kind))] for kind in kinds}
        return {
            kind: (min(min(row.seconds) for row in rows), rows[0].bytes, rows[0].form)
            for kind, rows in seen.items()
            if rows
        }

    def clock(self) -> float | None:
        """Return the SM clock of the cold batches, in Hz."""
        clocks = [hz for r in self.rounds for hz in r.sm_hz if hz]
        return statistics.median(clocks) if clocks else None
