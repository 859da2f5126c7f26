"""Times all kernels that are compared on one workload: in turns, round after round, until the intervals of their times
are narrow enough."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from assay import host, provenance
from assay.bench.clocks import second_clock
from assay.bench.entrant import UNSUPPORTED, Entrant
from assay.bench.evidence import BenchEvidence, Clocks, Copy, Speedup, Times, WriteBack
from assay.bench.limit import roofline, timed_floor
from assay.bench.planning import Options
from assay.bench.sensors import Sensors, state
from assay.bench.spent import Spent
from assay.bench.statistics import Estimate, ratio
from assay.bench.verdict import CLOSE, ENOUGH, too_wide, verdict
from assay.catalog.called import called
from assay.lazy import torch
from assay.machine.model import Model
from assay.record import Record, Status
from assay.worker.questions import Activity
from assay.workload import Workload

COPY = "copy"
_PATIENT = 4.0, 10.0
"""While an interval is wider than its value, measuring goes on for this many times the budget, or this many seconds per
kernel if that is longer: on a busy machine the interval shrinks with the number of rounds."""


@dataclass
class Cell:
    workload: Workload
    entrants: list[Entrant]
    baseline: str
    options: Options
    model: Callable[[str], Model | None]
    """The model of a device: `cuda` or `cpu`."""
    spent: Spent = field(default_factory=Spent)
    readings: list[dict[str, Any]] = field(default_factory=list)

    def run(self, tick: Callable[[str], None]) -> Iterator[Record]:
        """Measure, then yield one record per kernel; each contains the copy's figures."""
        began = time.perf_counter()
        gpu = host.gpu() if any(e.here.device == "cuda" for e in self.entrants) else None
        sensors = Sensors(gpu.bus) if gpu else None
        rng = random.Random(self.options.seed)
        rounds = 0
        try:
            self._prepare(tick)
            while not self._done(rounds, time.perf_counter() - began):
                for entrant in rng.sample(self.entrants, len(self.entrants)):
                    tick(f"{self.workload}  round {rounds + 1}  {entrant.name}")
                    with self.spent.on("time"):
                        entrant.measure(rounds)
                if sensors:
                    self.readings.append(sensors.read())
                rounds += 1
            if self.options.second_clock:
                self._take_second_clock(tick)
        finally:
            for entrant in self.entrants:
                entrant.leave()
        spent = (time.perf_counter() - began) / max(1, len(self.entrants))
        for entrant in self.entrants:
            if entrant.kernel is not None:
                yield self._record(entrant, spent)

    def _prepare(self, tick: Callable[[str], None]) -> None:
        """Start all processes, draw the inputs and build all kernels before anything is timed."""
        spent = self.spent
        tick(f"{self.workload}  starting")
        with spent.on("start"):
            torch.get_num_threads()  # imports torch here while the zygote also does so
            for entrant in self.entrants:
                entrant.open(self.options.second_clock)
        with spent.on("draw"):
            for entrant in self.entrants:
                entrant.truth.draw()
        tick(f"{self.workload}  building")
        with spent.on("build"):
            for truth in {id(e.truth): e.truth for e in self.entrants}.values():
                truth.calibrate_meanwhile()
            together = [e for e in self.entrants if not e.tunes_itself]
            for entrant in together:
                entrant.build()
            for entrant in together:
                entrant.built()
            for entrant in (e for e in self.entrants if e.tunes_itself):
                entrant.build_alone()

    def _take_second_clock(self, tick: Callable[[str], None]) -> None:
        with self.spent.on("clocks"):
            for entrant in self.entrants:
                if entrant.watchable:
                    tick(f"{self.workload}  second clock  {entrant.name}")
                    entrant.record_activity()

    def _done(self, rounds: int, spent: float) -> bool:
        alive = [e for e in self.entrants if not e.failure]
        if not any(e.kernel for e in alive):
            return rounds > 0
        if rounds < self.options.rounds:
            return False
        if all(e.estimate().spread <= CLOSE for e in alive):
            return True
        budget = self.options.budget
        if self.options.patient and rounds < ENOUGH and any(too_wide(e.estimate()) for e in alive if e.kernel):
            factor, least = _PATIENT
            budget = max(factor * budget, least)
        return spent > budget * len(self.entrants)

    def _record(self, entrant: Entrant, spent: float) -> Record:
        kernel = entrant.kernel
        assert kernel is not None
        against = f" --against {','.join(self.options.against)}" if self.options.against else ""
        name = called(kernel, self.workload.op, entrant.parameters)
        common: dict[str, Any] = {
            "verb": "bench",
            "kernel": kernel.name,
            "workload": str(self.workload),
            "run": self.options.run,
            "replay": f"assay bench {name} --workload {self.workload}{against}",
            "source": provenance.source_of(kernel.home, kernel.line),
            "provenance": provenance.provenance(self.options.seed),
            "seconds": spent,
        }
        if entrant.failure:
            detector, what = entrant.failure.detector, entrant.failure.what
            skipped = detector == UNSUPPORTED
            return Record(
                status=Status.SKIPPED if skipped else Status.FAIL,
                reason=what if skipped else f"{detector}: {what}",
                evidence=BenchEvidence(
                    device=entrant.here.device,
                    detector=detector,
                    parameters=entrant.parameters or None,
                    tuned=entrant.tuned,
                ).to_dict(),
                **common,
            )
        cold, copy = entrant.estimate(), self._measured(COPY, entrant.here.device)
        evidence = self._evidence(entrant, cold, copy)
        status, detector, reason = verdict(cold, entrant.own(), copy.estimate() if copy else None, evidence)
        return Record(
            status=status,
            reason=reason,
            evidence=replace(evidence, detector=detector).to_dict(),
            artifacts=entrant.code(),
            median=cold.median,
            interval=cold.interval,
            samples=entrant.samples("cold"),
            **common,
        )

    def _evidence(self, entrant: Entrant, cold: Estimate, copy: Entrant | None) -> BenchEvidence:
        first, device = entrant.first, entrant.here.device
        moved, operations = self.workload.bytes, self.workload.operations
        hot, call = (entrant.estimate(kind) for kind in ("hot", "call"))
        cold_enough = all(r.cold_enough for r in entrant.timed)
        evidence = BenchEvidence(
            device=device,
            method=first.method,
            rounds=len(entrant.rounds),
            batch=first.batch,
            sets=first.sets,
            cold_enough=first.cold_enough,
            converged=cold.spread <= CLOSE,
            hot=Times(hot.median, hot.interval, entrant.samples("hot")),
            call=Times(call.median, call.interval, entrant.samples("call")),
            bytes=moved,
            operations=operations,
            gbps=moved / cold.median / 1e9,
            tflops=operations / cold.median / 1e12 if operations else None,
            # A kernel keeps its process, so on a later workload everything may already be built.
            compile_seconds=max(
                0.0, entrant.processes.first_calls.setdefault(entrant.identity, first.first_call) - call.median
            ),
            peak_bytes=first.peak_bytes,
            threads=entrant.processes.threads if device == "cpu" else None,
            floor=timed_floor(moved, copy.fastest(), cold_enough) if copy else None,
            parent_clock=entrant.parent_clock,
            roofline=roofline(self.workload, self.model(device), first.cache, cold.median),
            parameters=entrant.parameters or None,
            peer=entrant.chosen,
            prepared_bytes=first.prepared_bytes,
            less_accurate=entrant.less_accurate,
            tuned=entrant.tuned,
        )
        if baseline := self._measured(self.baseline, device):
            faster = ratio(baseline.samples("cold"), entrant.samples("cold"))
            evidence = replace(evidence, baseline=self.baseline, speedup=Speedup(faster.median, faster.interval))
        if copy:
            copied = copy.estimate()
            kept = min(self.workload.written, first.cache)
            evidence = replace(
                evidence,
                copy=Copy(copied.median, copied.interval, copy.fastest()["copy"][2]),
                share_of_copy=ratio(copy.samples("cold"), entrant.samples("cold")).median,
                write_back=WriteBack(kept, kept * copied.median / max(1, moved)),
            )
        return self._on_gpu(evidence, entrant, cold) if device == "cuda" else evidence

    def _on_gpu(self, evidence: BenchEvidence, entrant: Entrant, cold: Estimate) -> BenchEvidence:
        """Return the evidence with the fields that only a GPU provides."""
        held, method = all(r.held for r in entrant.timed), evidence.method
        if why := entrant.processes.uncapturable.get(entrant.identity):
            method += f"; its calls cannot be captured into a graph: {why}"
        if not held:
            method = "events around each batch; the launches could not be queued ahead of the device"
        hz, model, activity = entrant.clock(), self.model("cuda"), entrant.activity
        taken = sum(len(r.cold) for r in entrant.timed)
        return replace(
            evidence,
            method=method,
            start=(model.value("launch.graph_node") or None) if model and model.measured else None,
            second_clock=second_clock(cold.median, activity, held) if activity else None,
            launches=round(activity.launches, 2) if isinstance(activity, Activity) else 0 if activity else None,
            clocks=Clocks(hz / 1e6 if hz else None, **state(self.readings)),
            set_aside=taken - sum(map(len, entrant.samples("cold"))),
        )

    def _measured(self, name: str, device: str) -> Entrant | None:
        """Return the entrant of this name that was timed on the device, or None."""
        fits = (e for e in self.entrants if e.name == name and e.here.device == device and e.rounds and not e.failure)
        return next(fits, None)
