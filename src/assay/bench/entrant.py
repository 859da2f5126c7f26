"""One kernel (or the yardsticks) on one workload: its worker, its samples, what became of it."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field
from typing import Any

from assay import host
from assay.backends import Availability
from assay.bench.evidence import ParentClock
from assay.bench.limit import BEYOND_CACHE
from assay.bench.pace import claims_too_much, pace
from assay.bench.processes import Processes, Role
from assay.bench.statistics import Estimate, estimate
from assay.bench.truth import Truth
from assay.check.judge import Finding
from assay.dtype import dtype
from assay.errors import Unsupported
from assay.inspect.build import launches
from assay.kernel import Kernel
from assay.worker import Worker, WorkerLost
from assay.worker.bits import bits, signed
from assay.worker.channel import tensor
from assay.worker.request import Layout, message

_TRANSIENT = 0.97
"""A batch at less than this share of the usual SM clock is set aside, unless many are: then so runs the device."""
_MANY = 1 / 3
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
    rounds: list[dict[str, Any]] = field(default_factory=list)
    activity: dict[str, Any] = field(default_factory=dict)
    paces: list[ParentClock] = field(default_factory=list)
    """How the parent's own clock saw its batches."""
    failure: Finding | None = None
    _workers: dict[Role, Worker] = field(default_factory=dict)
    _told: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self._told = self._layout()

    def measure(self, number: int, effort: Effort, limit: float) -> None:
        """One round, unless it has failed before."""
        if self.failure:
            return
        judged = self.kernel is not None
        told = self._message(number, effort) | {
            "fetch": self.truth.wants(number) if judged else [],
            "keep": judged and self.truth.looks_again(number),
        }
        began = time.perf_counter()
        answer = self._ask("timed", told, limit)
        if why := answer.get("uncapturable"):
            self.processes.uncapturable[self.identity] = why
            self._workers.pop("timed").close()
            began = time.perf_counter()
            answer = self._ask("timed", told | {"capture": False}, limit)
        waited = time.perf_counter() - began
        if found := answer.get("finding"):
            self._fail("timed", Finding(str(found["detector"]), str(found["what"])))
        if self.failure:
            return
        self.rounds.append(answer)
        if not judged:
            return
        self.failure = self._judged(answer)
        if not self.failure and (why := claims_too_much(answer, waited)):
            self.failure = Finding("clock", why)
        if not self.failure and told["keep"]:
            self._look_at_the_clock(limit)
        if self.failure and "timed" in self._workers:  # nothing that such a process says is worth having
            self._workers.pop("timed").close()

    def _judged(self, answer: dict[str, Any]) -> Finding | None:
        """The outputs that the round fetched, judged like in `check`."""
        for kind, at in (("cold", 0), ("hot", 1)):
            if which := answer["fetched"].get(kind):
                outputs = self._outputs(at)
                if finding := self.truth.judge(self.identity, which, outputs):
                    detector, what = self._unwritten(which, outputs) or (finding.detector, finding.what)
                    return Finding(detector, f"a timed call computed something else: {what}")
        return None

    def _unwritten(self, which: dict[str, Any], outputs: dict[str, Any]) -> tuple[str, str] | None:
        """Whether wrong outputs are so because the call left the poison where it was."""
        for spec in self._told["outputs"]:
            value = outputs[spec["name"]]
            left = int((bits(value) == signed(spec["poison"][int(which["poison"]) % 3], value.element_size())).sum())
            if left:
                return "unwritten", f"{left} of {value.numel()} elements of `{spec['name']}` were not written"
        return None

    def _look_at_the_clock(self, limit: float) -> None:
        """Let the worker run a batch again while the parent looks at its own clock."""
        last = self.rounds[-1]
        called = self.estimate("call").median if self.identity in self.processes.uncapturable else 0.0

        def ask(times: int) -> float:
            began = time.perf_counter()
            if not self.failure:
                self._ask("timed", {"do": "again", "times": times}, limit)
            return time.perf_counter() - began

        # Calls that cannot be captured are launched one by one: the host's time for that counts here.
        found = pace(ask, last["batch"] * max(self.estimate().median, called))
        if self.failure:
            return
        self.paces.append(found)
        ask(-1)
        if not found.agrees:
            self.failure = Finding(
                "clock",
                f"its process says that {last['batch']} calls take {found.claimed * 1e6:.4g} µs, "
                f"the parent never waited less than {found.waited * 1e6:.4g} µs for them",
            )

    def code(self) -> list[dict[str, Any]]:
        """The machine code that was timed: as its process told, or, where the language does not tell, as it is built
        for this device."""
        told: list[dict[str, Any]] = self.rounds[0]["artifacts"]
        if told or self.kernel is None or self.here.device != "cuda" or self.kernel.address.backend != "cupy":
            return told
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
            worker.tell({"do": "watch"})
        self.activity = {"ready": not new}

    def look(self, effort: Effort, limit: float) -> None:
        """What the device itself says ran, for as many calls as a batch had."""
        worker = self._workers["watched"]
        told = self._message(0, effort) | {
            "activity": max(8, min(64, self.rounds[0]["batch"])),
            "fetch": [],
            "keep": False,
        }
        try:
            answer = {} if self.activity["ready"] else worker.hear(limit)
            self.activity = answer if "error" in answer else worker.ask(told, limit)
        except WorkerLost as lost:
            self.activity = {"error": {"message": lost.detail}}
        if "error" in self.activity:
            self._workers.pop("watched").close()

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

    def _message(self, number: int, effort: Effort) -> dict[str, Any]:
        return self._told | {
            "do": "timed",
            "device": self.here.device,
            "workload": str(self.truth.workload),
            "round": number,
            "samples": effort.samples,
            "seconds": effort.seconds,
            "threads": effort.threads,
            "most_bytes": effort.most_bytes,
            "capture": self.identity not in self.processes.uncapturable,
        }

    def _ask(self, role: Role, told: dict[str, Any], limit: float) -> dict[str, Any]:
        worker = self._workers[role] if role in self._workers else self._take(role)[0]
        try:
            answer = worker.ask(told, limit)
        except WorkerLost as lost:
            return self._fail(role, Finding(lost.how, lost.detail))
        if "error" in answer:
            error = answer["error"]
            if self.kernel and self.kernel.peer and error["type"] == Unsupported.__name__:
                return self._fail(role, Finding(UNSUPPORTED, error["what"]))
            where = f" at {error['where']}" if error["where"] else ""
            return self._fail(
                role, Finding("exception", f"{error['type']}: {error['what'] or error['message']}{where}")
            )
        return answer

    def _fail(self, role: Role, finding: Finding) -> dict[str, Any]:
        self.failure = finding
        self._workers.pop(role).close()
        return {}

    def _layout(self) -> dict[str, Any]:
        op, workload = self.truth.op, self.truth.workload
        if self.kernel is None:
            return {"kernel": None, "bytes": op.bytes(workload), "beyond_cache": BEYOND_CACHE, "arena": 0}
        layout = Layout(self.kernel, op, workload, 2, len(self.truth.drawn))
        told = message(self.kernel, op, workload, layout, self.here.mode, self.parameters)
        return told | {"variations": len(self.truth.drawn), "changeable": self.truth.changeable}

    def _fill(self, worker: Worker) -> None:
        memory = worker.memory(self._told["arena"])
        if self.kernel is None:
            return
        for spec in self._told["inputs"]:
            for at, values in zip(spec["at"], self.truth.drawn, strict=True):
                tensor(memory, at, values[spec["name"]].dtype, spec["shape"]).copy_(values[spec["name"]])

    def _outputs(self, index: int) -> dict[str, Any]:
        memory = self._workers["timed"].memory(self._told["arena"])
        return {
            s["name"]: tensor(memory, s["at"][index], dtype(s["dtype"]).torch, s["shape"])
            for s in self._told["outputs"]
        }

    def samples(self, kind: str) -> list[list[float]]:
        """By round, without batches that ran at a passing dip of the clock."""
        whole: list[list[float]] = [r[kind] for r in self.rounds]
        usual = self.clock()
        if kind != "cold" or not usual:
            return whole
        kept = [
            [s for s, hz in zip(r["cold"], r["sm_hz"], strict=True) if not hz or hz >= _TRANSIENT * usual]
            for r in self.rounds
        ]
        lost = 1 - sum(map(len, kept)) / sum(map(len, whole))
        return [few or all_ for few, all_ in zip(kept, whole, strict=True)] if lost < _MANY else whole

    def own(self) -> Estimate:
        """Of what the kernel itself took: on a CPU its processor time, from which other processes take nothing."""
        return self.estimate("busy" if self.rounds[0]["busy"] else "cold")

    def estimate(self, kind: str = "cold") -> Estimate:
        return estimate(self.samples(kind))

    def fastest(self) -> dict[str, tuple[float, int, str]]:
        """Of the yardsticks: for copy, read and write the least seconds of a call, its bytes, and its form."""
        found: dict[str, tuple[float, int, str]] = {}
        for kind in ("copy", "read", "write"):
            if seen := [r[kind] for r in self.rounds if kind in r]:
                found[kind] = (min(min(r["seconds"]) for r in seen), seen[0]["bytes"], seen[0]["form"])
        return found

    def clock(self) -> float | None:
        """The SM clock of the cold batches, in Hz."""
        clocks = [hz for r in self.rounds for hz in r["sm_hz"] if hz]
        return statistics.median(clocks) if clocks else None
