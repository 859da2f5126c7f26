"""One kernel (or the yardsticks) on one workload: its worker, its samples, what became of it."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeVar

from assay import host
from assay.backends import Availability
from assay.bench.evidence import ParentClock
from assay.bench.limit import BEYOND_CACHE
from assay.bench.pace import claims_too_much, pace
from assay.bench.processes import Processes, Role
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
    Repeat,
    Round,
    Time,
    Timed,
    TimeYardsticks,
    Uncapturable,
    Watch,
    Yardsticks,
)
from assay.worker.questions import Finding as Wrong
from assay.worker.request import Call

_TRANSIENT = 0.97
"""A batch at less than this share of the usual SM clock is set aside, unless many are: then so runs the device."""
_MANY = 1 / 3
A = TypeVar("A", bound=Answer)
BATCHES: Final[tuple[Literal["cold", "hot"], ...]] = ("cold", "hot")
"""Kinds of batches, in the order in which outputs of theirs lie in the arena."""
UNSUPPORTED = "unsupported"
"""The detector's name where a peer does not take the workload: it is skipped, not wrong."""


@dataclass(frozen=True)
class Effort:
    """How much is done in one round."""

    samples: int = 5
    seconds: float = 0.25
    """For one kind of time, at most."""
    threads: int = 1
    most_bytes: int = 8 << 30


def identity(kernel: Kernel | None) -> str:
    """What a kernel's process goes by; that of the yardsticks is theirs alone."""
    return kernel.identity if kernel else "yardsticks"


@dataclass
class Entrant:
    name: str
    kernel: Kernel | None
    """None: the copy, and with it a read and a write."""
    here: Availability
    truth: Truth
    processes: Processes
    parameters: dict[str, Any] = field(default_factory=dict)
    rounds: list[Timed | Yardsticks] = field(default_factory=list)
    activity: Activity | str | None = None
    """What the device itself recorded, or why it did not."""
    paces: list[ParentClock] = field(default_factory=list)
    """How the parent's own clock saw its batches."""
    failure: Finding | None = None
    _workers: dict[Role, Worker] = field(default_factory=dict)
    _watching: Watch | None = None
    """Asked for and not answered yet."""
    _call: Call | None = None

    def __post_init__(self) -> None:
        if self.kernel:
            op, workload, count = self.truth.op, self.truth.workload, len(self.truth.drawn)
            self._call = Call.of(
                self.kernel, op, workload, self.here.mode, self.parameters, variations=count, runs=len(BATCHES)
            )

    def measure(self, number: int, effort: Effort, limit: float) -> None:
        """One round, unless it has failed before."""
        if self.failure:
            return
        if self.kernel is None:
            round_ = self._round(effort)
            moved = self.truth.op.bytes(self.truth.workload)
            answer = self._ask("timed", TimeYardsticks(round_, moved, BEYOND_CACHE), limit)
            self.rounds += [answer] if answer else []
            return
        request = replace(
            self._request(number, effort),
            fetch=tuple(self.truth.wants(number)),
            keep=self.truth.looks_again(number),
        )
        began = time.perf_counter()
        timed = self._ask("timed", request, limit)
        if isinstance(timed, Uncapturable):
            self.processes.uncapturable[self.identity] = timed.why
            self._workers.pop("timed").close()
            began = time.perf_counter()
            timed = self._ask("timed", replace(request, round=self._round(effort)), limit)
        waited = time.perf_counter() - began
        if isinstance(timed, Wrong):
            self._fail("timed", Finding(timed.detector, timed.what))
        if not isinstance(timed, Timed):
            return
        self.rounds.append(timed)
        self.failure = self._judged(timed)
        if not self.failure and (why := claims_too_much(timed, waited)):
            self.failure = Finding("clock", why)
        if not self.failure and request.keep:
            self._look_at_the_clock(timed, limit)
        if self.failure and "timed" in self._workers:  # nothing that such a process says is worth having
            self._workers.pop("timed").close()

    def _judged(self, answer: Timed) -> Finding | None:
        """The outputs that the round fetched, judged like in `check`."""
        for at, kind in enumerate(BATCHES):
            if which := answer.fetched.get(kind):
                outputs = self._outputs(at)
                if finding := self.truth.judge(self.identity, which, outputs):
                    detector, what = self._unwritten(which, outputs) or (finding.detector, finding.what)
                    return Finding(detector, f"a timed call computed something else: {what}")
        return None

    def _unwritten(self, which: Fetched, outputs: dict[str, Any]) -> tuple[str, str] | None:
        """Whether wrong outputs are so because the call left the poison where it was."""
        assert self._call is not None
        for spec in self._call.outputs:
            value = outputs[spec.name]
            left = int((bits(value) == signed(spec.poison[which.poison % 3], value.element_size())).sum())
            if left:
                return "unwritten", f"{left} of {value.numel()} elements of `{spec.name}` were not written"
        return None

    def _look_at_the_clock(self, last: Timed, limit: float) -> None:
        """Let the worker run a batch again while the parent looks at its own clock."""
        called = self.estimate("call").median if self.identity in self.processes.uncapturable else 0.0

        def ask(times: int) -> float:
            began = time.perf_counter()
            if not self.failure:
                self._ask("timed", Repeat(times), limit)
            return time.perf_counter() - began

        # Calls that cannot be captured are launched one by one: the host's time for that counts here.
        found = pace(ask, last.batch * max(self.estimate().median, called))
        if self.failure:
            return
        self.paces.append(found)
        ask(-1)
        if not found.agrees:
            self.failure = Finding(
                "clock",
                f"its process says that {last.batch} calls take {found.claimed * 1e6:.4g} µs, "
                f"the parent never waited less than {found.waited * 1e6:.4g} µs for them",
            )

    def code(self) -> list[dict[str, Any]]:
        """The machine code that was timed: as its process told, or, where the language does not tell, as it is built
        for this device."""
        started = [dict(summary) for summary in self.first.artifacts]
        if started or self.kernel is None or self.here.device != "cuda" or self.kernel.address.backend != "cupy":
            return started
        gpu = host.gpu()
        assert gpu is not None
        op, workload, pool = self.truth.op, self.truth.workload, self.processes.pool
        built = launches(self.kernel, op, workload, gpu.target, pool, self.parameters)
        sure = {one.artifact.text_hash: one.artifact for one in built if not one.artifact.doubt}
        return [a.summary() for a in sure.values()]

    @property
    def watchable(self) -> bool:
        return self.kernel is not None and self.here.device == "cuda" and bool(self.rounds) and not self.failure

    def summon(self) -> None:
        """Start the process that the device's own recorder will watch: those of all entrants get ready side by side."""
        worker, new = self._take("watched")
        if new:
            self._watching = Watch()
            worker.tell(self._watching)

    def look(self, effort: Effort, limit: float) -> None:
        """What the device itself says ran, for as many calls as a batch had."""
        worker = self._workers["watched"]
        calls = max(8, min(64, self.first.batch))
        try:
            if self._watching:
                worker.hear(self._watching, limit)
            self.activity = worker.ask(Observe(self._request(0, effort), calls), limit)
        except (WorkerLost, Refused) as problem:
            self.activity = problem.detail if isinstance(problem, WorkerLost) else problem.failure.message
            self._workers.pop("watched").close()
        self._watching = None

    @property
    def timed(self) -> list[Timed]:
        """The rounds of a kernel."""
        return [r for r in self.rounds if isinstance(r, Timed)]

    @property
    def first(self) -> Timed:
        return self.timed[0]

    @property
    def identity(self) -> str:
        """Two files may have a kernel of the same name."""
        return identity(self.kernel)

    def leave(self) -> None:
        """The cell is done; healthy processes wait for the next one."""
        for role, worker in self._workers.items():
            self.processes.leave(self.identity, role, worker)
        self._workers = {}

    def _take(self, role: Role) -> tuple[Worker, bool]:
        """A process with this workload's inputs in its memory, and whether it is new."""
        language = self.kernel.address.backend if self.kernel else "torch"
        worker, new = self.processes.take(self.identity, role, language, self.here.mode)
        self._workers[role] = worker
        self._fill(worker)
        return worker, new

    def _round(self, effort: Effort) -> Round:
        capture = self.identity not in self.processes.uncapturable
        return Round(self.here.device, effort.samples, effort.seconds, effort.threads, effort.most_bytes, capture)

    def _request(self, number: int, effort: Effort) -> Time:
        assert self._call is not None
        truth = self.truth
        variations, changeable = len(truth.drawn), tuple(truth.changeable)
        return Time(self._call, self._round(effort), str(truth.workload), number, variations, changeable)

    def _ask(self, role: Role, request: Request[A], limit: float) -> A | None:
        """The answer; None where there is none, and the entrant has failed."""
        worker = self._workers[role] if role in self._workers else self._take(role)[0]
        try:
            return worker.ask(request, limit)
        except WorkerLost as lost:
            self._fail(role, Finding(lost.how, lost.detail))
        except Refused as refused:
            error = refused.failure
            if self.kernel and self.kernel.peer and error.type == Unsupported.__name__:
                self._fail(role, Finding(UNSUPPORTED, error.what))
            else:
                where = f" at {error.where}" if error.where else ""
                self._fail(role, Finding("exception", f"{error.type}: {error.what or error.message}{where}"))
        return None

    def _fail(self, role: Role, finding: Finding) -> None:
        self.failure = finding
        self._workers.pop(role).close()

    def _fill(self, worker: Worker) -> None:
        if self._call is None:
            return
        memory = worker.memory(self._call.arena)
        for spec in self._call.inputs:
            for index, values in enumerate(self.truth.drawn):
                spec.values(memory, index).copy_(values[spec.name])

    def _outputs(self, index: int) -> dict[str, Any]:
        assert self._call is not None
        memory = self._workers["timed"].memory(self._call.arena)
        return {spec.name: spec.values(memory, index) for spec in self._call.outputs}

    def samples(self, kind: str) -> list[list[float]]:
        """By round, without batches that ran at a passing dip of the clock."""
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
        """Of what the kernel itself took: on a CPU its processor time, from which other processes take nothing."""
        return self.estimate("busy" if self.first.busy else "cold")

    def estimate(self, kind: str = "cold") -> Estimate:
        return estimate(self.samples(kind))

    def fastest(self) -> dict[str, tuple[float, int, str]]:
        """Of the yardsticks: for copy, read and write the least seconds of a call, its bytes, and its form."""
        fastest: dict[str, tuple[float, int, str]] = {}
        for kind in ("copy", "read", "write"):
            if seen := [one for r in self.rounds if (one := getattr(r, kind))]:
                fastest[kind] = (min(min(one.seconds) for one in seen), seen[0].bytes, seen[0].form)
        return fastest

    def clock(self) -> float | None:
        """The SM clock of the cold batches, in Hz."""
        clocks = [hz for r in self.rounds for hz in r.sm_hz if hz]
        return statistics.median(clocks) if clocks else None
