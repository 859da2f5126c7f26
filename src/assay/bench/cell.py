"""One workload: all kernels that are compared on it, measured in turns, round after round, until their times stand."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from assay import host, provenance
from assay.bench.agreement import agreement
from assay.bench.entrant import UNSUPPORTED, Effort, Entrant
from assay.bench.evidence import BenchEvidence, Clocks, Copy, Floor, Speedup, Times, WriteBack
from assay.bench.limit import Limit, limit, timed_floor
from assay.bench.sensors import Sensors, state
from assay.bench.statistics import Estimate, ratio
from assay.bench.verdict import CLOSE, ENOUGH, too_wide, verdict
from assay.machine.model import Model
from assay.op import Op
from assay.record import Record, Status
from assay.worker.questions import Activity
from assay.workload import Workload

COPY = "copy"
_PATIENT = 4.0, 10.0
"""Times the budget, and seconds for each kernel at least, that measuring goes on while an interval is wider than its
value: on a busy machine it shrinks with the number of rounds."""


@dataclass(frozen=True)
class Settings:
    """What all cells of a run share."""

    rounds: int
    budget: float
    """Seconds of measuring for each kernel of a cell."""
    seconds: float
    """That a worker may take for one round."""
    effort: Effort
    seed: int
    run: str
    model: Callable[[str], Model | None]
    replay: Callable[[Entrant], str]
    second_clock: bool
    compiled: dict[str, float]
    """Seconds that each kernel's first call took longer than its later ones, in this run."""


@dataclass
class Cell:
    op: Op
    workload: Workload
    entrants: list[Entrant]
    baseline: str
    settings: Settings
    readings: list[dict[str, Any]] = field(default_factory=list)

    def run(self, tick: Callable[[str], None]) -> Iterator[Record]:
        """Measure, then one record per kernel, the copy's figures in each."""
        began = time.perf_counter()
        cuda = any(e.here.device == "cuda" for e in self.entrants)
        gpu = host.gpu() if cuda else None
        sensors = Sensors(gpu.bus) if gpu else None
        rng = random.Random(self.settings.seed)
        rounds = 0
        try:
            while not self._done(rounds, time.perf_counter() - began):
                turn = rng.sample(self.entrants, len(self.entrants))
                for entrant in turn:
                    tick(f"{self.workload}  round {rounds + 1}  {entrant.name}")
                    entrant.measure(rounds, self.settings.effort, self.settings.seconds)
                if sensors:
                    self.readings.append(sensors.read())
                rounds += 1
            if self.settings.second_clock:
                self._look(tick)
        finally:
            for entrant in self.entrants:
                entrant.leave()
        spent = time.perf_counter() - began
        for entrant in self.entrants:
            if entrant.kernel is not None:
                yield self._record(entrant, spent / max(1, len(self.entrants)))

    def _look(self, tick: Callable[[str], None]) -> None:
        watched = [e for e in self.entrants if e.watchable]
        for entrant in watched:
            entrant.summon()
        for entrant in watched:
            tick(f"{self.workload}  second clock  {entrant.name}")
            entrant.look(self.settings.effort, self.settings.seconds)

    def _done(self, rounds: int, spent: float) -> bool:
        alive = [e for e in self.entrants if not e.failure]
        if not any(e.kernel for e in alive):
            return rounds > 0
        if rounds < self.settings.rounds:
            return False
        if all(e.estimate().spread <= CLOSE for e in alive):
            return True
        budget = self.settings.budget
        if rounds < ENOUGH and any(too_wide(e.estimate()) for e in alive if e.kernel):
            factor, least = _PATIENT
            budget = max(factor * budget, least)
        return spent > budget * len(self.entrants)

    def _record(self, entrant: Entrant, spent: float) -> Record:
        assert entrant.kernel is not None
        source = provenance.source_of(entrant.kernel.file, entrant.kernel.line)
        common: dict[str, Any] = {
            "verb": "bench",
            "kernel": entrant.kernel.name,
            "workload": str(self.workload),
            "run": self.settings.run,
            "replay": self.settings.replay(entrant),
            "source": source,
            "provenance": provenance.provenance(self.settings.seed),
            "seconds": spent,
        }
        if entrant.failure:
            detector, what = entrant.failure.detector, entrant.failure.what
            skipped = detector == UNSUPPORTED
            return Record(
                status=Status.SKIPPED if skipped else Status.FAIL,
                reason=what if skipped else f"{detector}: {what}",
                evidence=BenchEvidence(
                    device=entrant.here.device, detector=detector, parameters=entrant.parameters or None
                ).to_dict(),
                **common,
            )
        cold, samples = entrant.estimate(), entrant.samples("cold")
        known = limit(self.op, self.workload, self.settings.model(entrant.here.device), entrant.first.cache)
        yardstick = self._measured(COPY, entrant.here.device)
        floor = self._floor(entrant, yardstick)
        evidence = self._evidence(entrant, cold, known, floor)
        status, detector, reason = verdict(
            cold, entrant.own(), yardstick.estimate() if yardstick else None, evidence, known, floor
        )
        return Record(
            status=status,
            reason=reason,
            evidence=replace(evidence, detector=detector).to_dict(),
            artifacts=entrant.code(),
            median=cold.median,
            interval=cold.interval,
            samples=samples,
            **common,
        )

    def _floor(self, entrant: Entrant, yardstick: Entrant | None) -> Floor | None:
        """What was timed beside it says that it cannot be faster."""
        if yardstick is None:
            return None
        cold = all(r.cold_enough for r in entrant.timed)
        return timed_floor(self.op.bytes(self.workload), yardstick.fastest(), cold)

    def _evidence(self, entrant: Entrant, cold: Estimate, known: Limit | None, floor: Floor | None) -> BenchEvidence:
        first, device = entrant.first, entrant.here.device
        moved, operations = self.op.bytes(self.workload), self.op.operations(self.workload)
        evidence = BenchEvidence(
            device=device,
            method=first.method,
            rounds=len(entrant.rounds),
            batch=first.batch,
            sets=first.sets,
            cold_enough=first.cold_enough,
            converged=cold.spread <= CLOSE,
            hot=self._times(entrant, "hot"),
            call=self._times(entrant, "call"),
            bytes=moved,
            operations=operations,
            gbps=moved / cold.median / 1e9,
            tflops=operations / cold.median / 1e12,
            compile_seconds=self._compiled(entrant),
            peak_bytes=first.peak_bytes,
            threads=self.settings.effort.threads if device == "cpu" else None,
            floor=floor,
            parent_clock=entrant.paces[-1] if entrant.paces else None,
            roofline=known.roofline(cold.median) if known else None,
            parameters=entrant.parameters or None,
        )
        evidence = self._compared(evidence, entrant)
        return self._on_gpu(evidence, entrant, cold) if device == "cuda" else evidence

    @staticmethod
    def _times(entrant: Entrant, clock: str) -> Times:
        found = entrant.estimate(clock)
        return Times(found.median, found.interval, entrant.samples(clock))

    def _compared(self, evidence: BenchEvidence, entrant: Entrant) -> BenchEvidence:
        """With the baseline, and with the copy, as far as they were timed on the same device."""
        if base := self._measured(self.baseline, evidence.device):
            faster = ratio(base.samples("cold"), entrant.samples("cold"))
            evidence = replace(evidence, baseline=self.baseline, speedup=Speedup(faster.median, faster.interval))
        if copy := self._measured(COPY, evidence.device):
            copied = copy.estimate()
            kept = min(self.op.written(self.workload), entrant.first.cache)
            evidence = replace(
                evidence,
                copy=Copy(copied.median, copied.interval, copy.fastest()["copy"][2]),
                share_of_copy=ratio(copy.samples("cold"), entrant.samples("cold")).median,
                write_back=WriteBack(kept, kept * copied.median / max(1, evidence.bytes or 0)),
            )
        return evidence

    def _on_gpu(self, evidence: BenchEvidence, entrant: Entrant, cold: Estimate) -> BenchEvidence:
        held, method = all(r.held for r in entrant.timed), evidence.method
        if why := entrant.processes.uncapturable.get(entrant.identity):
            method += f"; its calls cannot be captured into a graph: {why}"
        if not held:
            method = "events around each batch; the launches could not be queued ahead of the device"
        hz, model, seen = entrant.clock(), self.settings.model("cuda"), entrant.activity
        taken = sum(len(r.cold) for r in entrant.timed)
        return replace(
            evidence,
            method=method,
            start=(model.value("launch.graph_node") or None) if model and model.measured else None,
            second_clock=agreement(cold.median, seen, held) if seen else None,
            launches=round(seen.launches, 2) if isinstance(seen, Activity) else 0 if seen else None,
            clocks=Clocks(hz / 1e6 if hz else None, **state(self.readings)),
            set_aside=taken - sum(map(len, entrant.samples("cold"))),
        )

    def _compiled(self, entrant: Entrant) -> float:
        """A kernel keeps its process, so a later workload may find everything built."""
        here = max(0.0, entrant.first.first_call - entrant.estimate("call").median)
        return self.settings.compiled.setdefault(entrant.identity, here)

    def _measured(self, name: str, device: str) -> Entrant | None:
        """What to compare with, on the same device."""
        fits = (e for e in self.entrants if e.name == name and e.here.device == device and e.rounds and not e.failure)
        return next(fits, None)
