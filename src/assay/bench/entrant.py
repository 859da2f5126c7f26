"""One kernel (or the yardsticks) on one workload: its worker, its samples and its failure, if it has one."""

import statistics
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from assay import host
from assay.backends import Availability
from assay.bench.clocks import claims_too_much, parent_clock
from assay.bench.evidence import ParentClock
from assay.bench.limit import BEYOND_CACHE
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
_SAMPLES, _SECONDS = 5, 0.25
"""Samples of one kind of time in a round, and the most seconds that they may take."""
UNSUPPORTED = "unsupported"
"""The detector's name where a peer does not support the workload: it is skipped, not wrong."""
YARDSTICKS = "yardsticks"
"""The identity of the copy, the read and the write, which are no kernels."""


@dataclass
class Entrant:
    name: str
    kernel: Kernel | None
    """None: the yardsticks."""
    here: Availability
    truth: Truth
    processes: Processes
    parameters: dict[str, Any] = field(default_factory=dict)
    rounds: list[dict[str, Any]] = field(default_factory=list)
    """The worker's answers."""
    activity: dict[str, Any] = field(default_factory=dict)
    """What the device itself recorded."""
    parent_clock: ParentClock | None = None
    failure: Finding | None = None
    _workers: dict[Role, Worker] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """The name of its process: two files may have a kernel of the same address."""
        return self.kernel.identity if self.kernel else YARDSTICKS

    def measure(self, number: int) -> None:
        """Time one round, unless an earlier one failed."""
        if self.failure:
            return
        judged = self.kernel is not None
        request = self._round(number) | {
            "fetch": self.truth.wants(number) if judged else [],
            "keep": judged and self.truth.wants_parent_clock(number),
        }
        began = time.perf_counter()
        answer = self._ask(request)
        if why := answer.get("uncapturable"):
            self.processes.uncapturable[self.identity] = why
            self._workers.pop("timed").close()
            began = time.perf_counter()
            answer = self._ask(request | {"capture": False})
        waited = time.perf_counter() - began
        if finding := answer.get("finding"):
            self._fail(str(finding["detector"]), str(finding["what"]))
        if self.failure:
            return
        self.rounds.append(answer)
        if judged:
            self._judge(answer)
            if not self.failure and (why := claims_too_much(answer, waited)):
                self._fail("clock", why)
            if not self.failure and request["keep"]:
                self._take_parent_clock()

    def _judge(self, answer: dict[str, Any]) -> None:
        """Judge the outputs that the round fetched, as `check` does."""
        for index, kind in enumerate(("cold", "hot")):
            if not self.failure and (call := answer["fetched"].get(kind)):
                outputs = self._outputs(index)
                if finding := self.truth.judge(self.identity, call, outputs):
                    detector, what = self._unwritten(call, outputs) or (finding.detector, finding.what)
                    self._fail(detector, f"a timed call computed something else: {what}")

    def _unwritten(self, call: dict[str, Any], outputs: dict[str, Any]) -> tuple[str, str] | None:
        """Return detector and reason where outputs are wrong because the call did not write all of them."""
        for spec in self._layout["outputs"]:
            value = outputs[spec["name"]]
            left = int((bits(value) == signed(spec["poison"][int(call["poison"]) % 3], value.element_size())).sum())
            if left:
                return "unwritten", f"{left} of {value.numel()} elements of `{spec['name']}` were not written"
        return None

    def _take_parent_clock(self) -> None:
        """Let the worker run a batch again while the parent reads its own clock."""
        batch = self.rounds[-1]["batch"]
        called = self.estimate("call").median if self.identity in self.processes.uncapturable else 0.0

        def ask(times: int) -> float:
            began = time.perf_counter()
            if not self.failure:
                self._ask({"do": "again", "times": times})
            return time.perf_counter() - began

        # Calls that cannot be captured are launched one by one: the host's time for that counts here.
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
        """Return the machine code that was timed: as its process reported it or, where the language does not report it,
        as it is built for this device."""
        reported: list[dict[str, Any]] = self.rounds[0]["artifacts"]
        if reported or self.kernel is None or self.here.device != "cuda" or self.kernel.address.backend != "cupy":
            return reported
        gpu = host.gpu()
        assert gpu is not None
        op, workload, pool = self.truth.op, self.truth.workload, self.processes.pool
        built = launches(self.kernel, op, workload, gpu.target, pool, self.parameters)
        certain = {one.artifact.text_hash: one.artifact for one in built if not one.artifact.doubt}
        return [a.summary() for a in certain.values()]

    @property
    def watchable(self) -> bool:
        return self.kernel is not None and self.here.device == "cuda" and bool(self.rounds) and not self.failure

    def start_watched_process(self) -> None:
        """Start the process that the device's own recorder will watch: those of all entrants get ready side by side."""
        worker, new = self._take("watched")
        if new:
            worker.tell({"do": "watch"})
        self.activity = {"ready": not new}

    def record_activity(self) -> None:
        """Take the device's own record of what ran, for as many calls as a batch had."""
        worker = self._workers["watched"]
        request = self._round(0) | {
            "activity": max(8, min(64, self.rounds[0]["batch"])),
            "fetch": [],
            "keep": False,
        }
        limit = self.processes.seconds
        try:
            answer = {} if self.activity["ready"] else worker.hear(limit)
            self.activity = answer if "error" in answer else worker.ask(request, limit)
        except WorkerLost as lost:
            self.activity = {"error": {"message": lost.detail}}
        if "error" in self.activity:
            self._workers.pop("watched").close()

    def leave(self) -> None:
        """Leave the healthy processes to the next cell."""
        for role, worker in self._workers.items():
            self.processes.leave(self.identity, role, worker)
        self._workers = {}

    def _take(self, role: Role) -> tuple[Worker, bool]:
        """Return a process with this workload's inputs in its memory, and whether it is new."""
        language = self.kernel.address.backend if self.kernel else "torch"
        worker, new = self.processes.take(self.identity, role, language, self.here.mode)
        self._workers[role] = worker
        memory = worker.memory(self._layout["arena"])
        for spec in self._layout["inputs"]:
            for at, values in zip(spec["at"], self.truth.drawn, strict=True):
                tensor(memory, at, values[spec["name"]].dtype, spec["shape"]).copy_(values[spec["name"]])
        return worker, new

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of the process that is timed; where there is none, note the failure and return nothing."""
        worker = self._workers["timed"] if "timed" in self._workers else self._take("timed")[0]
        try:
            answer = worker.ask(request, self.processes.seconds)
        except WorkerLost as lost:
            return self._fail(lost.how, lost.detail)
        if "error" not in answer:
            return answer
        error = answer["error"]
        if self.kernel and self.kernel.peer and error["type"] == Unsupported.__name__:
            return self._fail(UNSUPPORTED, error["what"])
        where = f" at {error['where']}" if error["where"] else ""
        return self._fail("exception", f"{error['type']}: {error['what'] or error['message']}{where}")

    def _fail(self, detector: str, what: str) -> dict[str, Any]:
        """Note the failure and end the process: nothing that it says can be believed any more."""
        self.failure = Finding(detector, what)
        if worker := self._workers.pop("timed", None):
            worker.close()
        return {}

    def _round(self, number: int) -> dict[str, Any]:
        """Return the request to time one round."""
        return self._layout | {
            "do": "timed",
            "device": self.here.device,
            "workload": str(self.truth.workload),
            "round": number,
            "samples": _SAMPLES,
            "seconds": _SECONDS,
            "threads": self.processes.threads,
            "most_bytes": self.processes.most_bytes,
            "capture": self.identity not in self.processes.uncapturable,
        }

    @cached_property
    def _layout(self) -> dict[str, Any]:
        """What is computed, and where in the shared memory inputs and outputs are."""
        op, workload = self.truth.op, self.truth.workload
        if self.kernel is None:
            cost = {"bytes": op.bytes(workload), "beyond_cache": BEYOND_CACHE}
            return {"kernel": None, "arena": 0, "inputs": [], **cost}
        layout = Layout(self.kernel, op, workload, 2, len(self.truth.drawn))
        request = message(self.kernel, op, workload, layout, self.here.mode, self.parameters)
        return request | {"variations": len(self.truth.drawn), "changeable": self.truth.changeable}

    def _outputs(self, index: int) -> dict[str, Any]:
        memory = self._workers["timed"].memory(self._layout["arena"])
        return {
            s["name"]: tensor(memory, s["at"][index], dtype(s["dtype"]).torch, s["shape"])
            for s in self._layout["outputs"]
        }

    def samples(self, kind: str) -> list[list[float]]:
        """Return the samples by round, without batches that ran at a passing dip of the clock."""
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
        """Return the time that the kernel itself used: on a CPU its processor time, which other processes do not
        change."""
        return self.estimate("busy" if self.rounds[0]["busy"] else "cold")

    def estimate(self, kind: str = "cold") -> Estimate:
        return estimate(self.samples(kind))

    def fastest(self) -> dict[str, tuple[float, int, str]]:
        """Of the yardsticks: for copy, read and write the least seconds of a call, its bytes, and its form."""
        seen = {kind: [r[kind] for r in self.rounds if kind in r] for kind in ("copy", "read", "write")}
        return {
            kind: (min(min(r["seconds"]) for r in rows), rows[0]["bytes"], rows[0]["form"])
            for kind, rows in seen.items()
            if rows
        }

    def clock(self) -> float | None:
        """Return the SM clock of the cold batches, in Hz."""
        clocks = [hz for r in self.rounds for hz in r["sm_hz"] if hz]
        return statistics.median(clocks) if clocks else None
