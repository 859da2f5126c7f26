"""One kernel (or the copy that serves as yardstick) on one workload: its worker, its samples, what became of it."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any

from assay.backends import Availability
from assay.bench.statistics import Estimate, estimate
from assay.bench.truth import Truth
from assay.check.judge import Finding
from assay.check.request import Layout, message
from assay.dtype import dtype
from assay.kernel import Kernel
from assay.worker import Pool, Worker, WorkerLost
from assay.worker.channel import tensor

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
    parameters: dict[str, Any] = field(default_factory=dict)
    workers: dict[str, Worker] = field(default_factory=dict)
    """Of kernels that were timed before, by name: a kernel keeps its process from workload to workload."""
    worker: Worker | None = None
    _told: dict[str, Any] = field(default_factory=dict)
    rounds: list[dict[str, Any]] = field(default_factory=list)
    activity: dict[str, Any] = field(default_factory=dict)
    failure: Finding | None = None

    def measure(self, pool: Pool, number: int, effort: Effort, limit: float) -> None:
        """One round, unless it has failed before."""
        if self.failure:
            return
        answer = self._ask(pool, number, effort, limit)
        if self.failure or self.kernel is None or not self._told["fetch"]:
            return
        finding = self.truth.judge(self.name, answer["variation"], self._outputs())
        if finding:
            self.failure = Finding(finding.detector, f"a timed call computed something else: {finding.what}")

    def look(self, pool: Pool, effort: Effort, limit: float) -> None:
        """What the device itself says ran, for as many calls as a batch had."""
        if self.here.device == "cuda" and not self.failure and self.rounds:
            self._ask(pool, 0, effort, limit, activity=max(8, min(64, self.rounds[0]["batch"])))

    def _ask(self, pool: Pool, number: int, effort: Effort, limit: float, **more: Any) -> dict[str, Any]:
        if self.worker is None:
            backend = self.kernel.address.backend if self.kernel else "torch"
            self.worker = self.workers.pop(self.name, None) or pool.worker(backend, self.here.mode)
            self._told = self._layout()
            self._fill()
        self._told["fetch"] = self.kernel is not None and self.truth.wants(self.name, number)
        told = self._told | {"do": "timed", "device": self.here.device, "round": number, "samples": effort.samples}
        told["workload"] = str(self.truth.workload)
        told |= {"seconds": effort.seconds, "threads": effort.threads, "most_bytes": effort.most_bytes, **more}
        try:
            answer = self.worker.ask(told, limit)
        except WorkerLost as lost:
            self.failure = Finding(lost.how, lost.detail)
            self.close()
            return {}
        if "error" in answer:
            error = answer["error"]
            where = f" at {error['where']}" if error["where"] else ""
            self.failure = Finding("exception", f"{error['type']}: {error['what'] or error['message']}{where}")
            self.close()
            return {}
        if more:
            self.activity = answer
        else:
            self.rounds.append(answer)
        return answer

    def _layout(self) -> dict[str, Any]:
        op, workload = self.truth.op, self.truth.workload
        if self.kernel is None:
            half = max(1, op.bytes(workload) // 2)
            spec = {"dtype": "uint8", "shape": [half], "strides": [1], "offset": 0, "poison": [0], "at": [0]}
            inputs, outputs = [spec | {"name": "from"}], [spec | {"name": "to"}]
            return {
                "kernel": None, "inputs": inputs, "outputs": outputs, "scratch": [], "arena": half, "variations": 1,
            }  # fmt: skip
        layout = Layout(self.kernel, op, workload, 1, len(self.truth.drawn))
        told = message(self.kernel, op, workload, layout, self.here.mode, self.parameters)
        return told | {"variations": len(self.truth.drawn)}

    def _fill(self) -> None:
        assert self.worker is not None
        memory = self.worker.memory(self._told["arena"])
        if self.kernel is None:
            return
        for spec in self._told["inputs"]:
            for at, values in zip(spec["at"], self.truth.drawn, strict=True):
                tensor(memory, at, values[spec["name"]].dtype, spec["shape"]).copy_(values[spec["name"]])

    def _outputs(self) -> dict[str, Any]:
        assert self.worker is not None
        memory = self.worker.memory(self._told["arena"])
        return {
            s["name"]: tensor(memory, s["at"][0], dtype(s["dtype"]).torch, s["shape"]) for s in self._told["outputs"]
        }

    def leave(self) -> None:
        """The cell is done; a healthy worker waits for the next one."""
        if self.worker:
            self.workers[self.name], self.worker = self.worker, None

    def close(self) -> None:
        if self.worker:
            self.worker.close()
            self.worker = None

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
