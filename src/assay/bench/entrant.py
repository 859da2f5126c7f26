"""One kernel (or the copy that serves as yardstick) on one workload: its worker, its samples, what became of it."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any

from assay import host
from assay.backends import Availability
from assay.bench.processes import Processes, Role
from assay.bench.statistics import Estimate, estimate
from assay.bench.truth import Truth
from assay.check.judge import Finding
from assay.dtype import dtype
from assay.inspect.build import launches
from assay.kernel import Kernel
from assay.worker import Worker, WorkerLost
from assay.worker.channel import tensor
from assay.worker.request import Layout, message

_TRANSIENT = 0.97
"""A batch at less than this share of the usual SM clock is set aside, unless many are: then so runs the device."""
_MANY = 1 / 3


@dataclass(frozen=True)
class Effort:
    """How much is done in one round."""

    samples: int = 5
    seconds: float = 0.25
    """For one kind of time, at most."""
    threads: int = 1
    most_bytes: int = 8 << 30


@dataclass
class Entrant:
    name: str
    kernel: Kernel | None
    """None: the copy."""
    here: Availability
    truth: Truth
    processes: Processes
    parameters: dict[str, Any] = field(default_factory=dict)
    rounds: list[dict[str, Any]] = field(default_factory=list)
    activity: dict[str, Any] = field(default_factory=dict)
    failure: Finding | None = None
    _workers: dict[Role, Worker] = field(default_factory=dict)
    _told: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self._told = self._layout()

    def measure(self, number: int, effort: Effort, limit: float) -> None:
        """One round, unless it has failed before."""
        if self.failure:
            return
        fetch = self.kernel is not None and self.truth.wants(number)
        answer = self._ask("timed", self._message(number, effort) | {"fetch": fetch}, limit)
        if why := answer.get("uncapturable"):
            self.processes.uncapturable[self.name] = why
            self._workers.pop("timed").close()
            answer = self._ask("timed", self._message(number, effort) | {"fetch": fetch}, limit)
        if self.failure:
            return
        self.rounds.append(answer)
        if fetch and (finding := self.truth.judge(self.name, answer["variation"], self._outputs())):
            self.failure = Finding(finding.detector, f"a timed call computed something else: {finding.what}")

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
        told = self._message(0, effort) | {"activity": max(8, min(64, self.rounds[0]["batch"])), "fetch": False}
        try:
            answer = {} if self.activity["ready"] else worker.hear(limit)
            self.activity = answer if "error" in answer else worker.ask(told, limit)
        except WorkerLost as lost:
            self.activity = {"error": {"message": lost.detail}}
        if "error" in self.activity:
            self._workers.pop("watched").close()

    def leave(self) -> None:
        """The cell is done; healthy processes wait for the next one."""
        for role, worker in self._workers.items():
            self.processes.leave(self.name, role, worker)
        self._workers = {}

    def _take(self, role: Role) -> tuple[Worker, bool]:
        """A process with this workload's inputs in its memory, and whether it is new."""
        language = self.kernel.address.backend if self.kernel else "torch"
        worker, new = self.processes.take(self.name, role, language, self.here.mode)
        self._workers[role] = worker
        self._fill(worker)
        return worker, new

    def _message(self, number: int, effort: Effort) -> dict[str, Any]:
        return self._told | {
            "do": "timed", "device": self.here.device, "workload": str(self.truth.workload), "round": number,
            "samples": effort.samples, "seconds": effort.seconds, "threads": effort.threads,
            "most_bytes": effort.most_bytes, "capture": self.name not in self.processes.uncapturable,
        }  # fmt: skip

    def _ask(self, role: Role, told: dict[str, Any], limit: float) -> dict[str, Any]:
        worker = self._workers[role] if role in self._workers else self._take(role)[0]
        try:
            answer = worker.ask(told, limit)
        except WorkerLost as lost:
            return self._fail(role, Finding(lost.how, lost.detail))
        if "error" in answer:
            error = answer["error"]
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
            words = max(1, op.bytes(workload) // 16)
            spec = {"dtype": "int64", "shape": [words], "strides": [1], "offset": 0, "poison": [0], "at": [0]}
            inputs, outputs = [spec | {"name": "from"}], [spec | {"name": "to"}]
            return {
                "kernel": None, "inputs": inputs, "outputs": outputs, "scratch": [], "arena": 8 * words,
                "variations": 1,
            }  # fmt: skip
        layout = Layout(self.kernel, op, workload, 1, len(self.truth.drawn))
        told = message(self.kernel, op, workload, layout, self.here.mode, self.parameters)
        return told | {"variations": len(self.truth.drawn)}

    def _fill(self, worker: Worker) -> None:
        memory = worker.memory(self._told["arena"])
        if self.kernel is None:
            return
        for spec in self._told["inputs"]:
            for at, values in zip(spec["at"], self.truth.drawn, strict=True):
                tensor(memory, at, values[spec["name"]].dtype, spec["shape"]).copy_(values[spec["name"]])

    def _outputs(self) -> dict[str, Any]:
        memory = self._workers["timed"].memory(self._told["arena"])
        return {
            s["name"]: tensor(memory, s["at"][0], dtype(s["dtype"]).torch, s["shape"]) for s in self._told["outputs"]
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

    def estimate(self, kind: str = "cold") -> Estimate:
        return estimate(self.samples(kind))

    def clock(self) -> float | None:
        """The SM clock of the cold batches, in Hz."""
        clocks = [hz for r in self.rounds for hz in r["sm_hz"] if hz]
        return statistics.median(clocks) if clocks else None
