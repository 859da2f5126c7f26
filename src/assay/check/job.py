"""One kernel in one dtype: build it, or fuzz it, and write the record."""

from __future__ import annotations

import shlex
import statistics
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from assay import provenance
from assay.backends import Availability, Level, backend
from assay.backends import here as available
from assay.check import fuzz, races, trial
from assay.check.fuzz import Sizes
from assay.check.judge import Finding
from assay.check.plain import PlainTorch
from assay.check.trial import Conditions, Outcome
from assay.dtype import DType
from assay.inspect.verb import gates
from assay.kernel import Kernel
from assay.library.called import called
from assay.library.tunables import tuned
from assay.op import Op
from assay.record import Record, Status
from assay.target import Target
from assay.worker import Pool, Worker, WorkerLost
from assay.worker.request import Layout, message
from assay.workload import Workload, parse

NATIVE, INTERPRETED = 60, 15
"""Workloads tried per kernel and dtype."""
_SIZES = {
    "cuda": Sizes(1 << 15, 1 << 19),
    "native": Sizes(1 << 14, 1 << 18),
    "triton-interpret": Sizes(1 << 12, 1 << 12),
    "numba-sim": Sizes(1 << 8, 1 << 8),
}
"""How large workloads grow, by where they run."""
_CLOSELY = 3
"""Workloads, the first ones, that are looked at closely (Conditions.deep)."""
_SLOW = ("timeout", "memory", "flood")
"""Failures too slow to be made small."""


@dataclass(frozen=True)
class Settings:
    """What all jobs of a run share."""

    pool: Pool
    plain: PlainTorch
    target: Target
    workloads: int | None
    seed: int
    parameters: dict[str, Any]
    run: str
    threads: int
    stop: threading.Event


@dataclass
class _Seen:
    """What the workloads tried so far have shown."""

    workloads: int = 0
    nondeterministic: int = 0
    seconds: list[float] = field(default_factory=list)
    errors: dict[str, dict[str, Any]] = field(default_factory=dict)
    controls: dict[str, list[int]] = field(default_factory=dict)
    beyond: dict[str, int] = field(default_factory=dict)
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    failure: tuple[Workload, Outcome] | None = None

    def add(self, workload: Workload, outcome: Outcome) -> None:
        self.seconds += outcome.seconds
        self.nondeterministic += not outcome.deterministic
        for e in outcome.errors:
            if e.output not in self.errors or e.share > self.errors[e.output]["share"]:
                self.errors[e.output] = {
                    "kernel": e.kernel,
                    "torch": e.torch,
                    "share": e.share,
                    "ratio": e.ratio,
                    "where": e.where,
                    "workload": str(workload),
                }
        for control, rejected in outcome.controls.items():
            counts = self.controls.setdefault(control, [0, 0])
            counts[0] += rejected
            counts[1] += 1
        self.artifacts += outcome.artifacts

    def evidence(self, here: Availability) -> dict[str, Any]:
        found: dict[str, Any] = {
            "workloads": self.workloads,
            "mode": here.mode,
            "device": here.device,
            "interpreted": here.level is Level.INTERPRET,
            "errors": self.errors,
            "deterministic": self.nondeterministic == 0,
            "nondeterministic_workloads": self.nondeterministic,
            "controls_rejected": {k: f"{r} of {n}" for k, (r, n) in self.controls.items()},
            "beyond_range": self.beyond,
        }
        if self.seconds:
            found["call_seconds"] = {"cold": self.seconds[0], "hot": statistics.median(self.seconds)}
        return found


@dataclass(frozen=True)
class Job:
    kernel: Kernel
    op: Op
    dtype: DType
    workload: Workload | None = None
    """Only this one; None: fuzz."""

    def run(self, settings: Settings, worker: Worker | None) -> tuple[Record, Worker | None]:
        """The record, and the worker if it is still healthy."""
        began = time.perf_counter()
        here = available(self.kernel)
        settings = replace(settings, parameters=tuned(self.kernel, self.op, settings.parameters))

        def record(
            status: Status,
            reason: str,
            workload: Workload | None = None,
            evidence: dict[str, Any] | None = None,
            artifacts: list[dict[str, Any]] | None = None,
        ) -> Record:
            shown = workload or self.workload
            return Record(
                "check",
                self.kernel.name,
                str(shown) if shown else f"dtype={self.dtype}",
                status,
                reason,
                settings.run,
                (evidence or {}) | ({"parameters": settings.parameters} if settings.parameters else {}),
                self.replay(shown, settings.parameters),
                provenance.source_of(self.kernel.file, self.kernel.line),
                artifacts or [],
                provenance.provenance(settings.seed),
                time.perf_counter() - began,
            )

        if here.level is Level.MISSING:
            return record(Status.SKIPPED, f"{here.reason}; {here.fix}"), worker
        if self.kernel.dtypes and self.dtype.name not in self.kernel.dtypes:
            quoted = (
                backend(self.kernel.address.backend).refusal(self.dtype.name)
                or f"it is written for {', '.join(self.kernel.dtypes)}"
            )
            return record(Status.SKIPPED, f"not for {self.dtype}: {quoted}"), worker
        does = self._build if here.level is Level.COMPILE else self._fuzz
        found, worker = does(settings, worker, here, record)
        return self._gated(found, settings), worker

    def _gated(self, found: Record, settings: Settings) -> Record:
        """A right kernel may still not be the code that its author asked for."""
        if not self.kernel.expects or found.status not in (Status.PASS, Status.COMPILED):
            return found
        broken = gates(self.kernel, self.op, parse(f"dtype={self.dtype}", self.op), settings.target, settings.pool)
        evidence = found.evidence | {"gates": {"expects": dict(self.kernel.expects), "broken": broken}}
        if not broken:
            return replace(found, evidence=evidence)
        evidence["detector"] = "gate"
        return replace(found, status=Status.FAIL, reason="; ".join(broken), evidence=evidence)

    def replay(self, workload: Workload | None, parameters: Mapping[str, Any]) -> str:
        """The command that does this again."""
        which = f"--workload {shlex.quote(str(workload))}" if workload else f"--dtype {self.dtype}"
        return f"assay check {called(self.kernel, self.op, parameters)} {which}"

    def _fuzz(
        self, settings: Settings, worker: Worker | None, here: Availability, record: Callable[..., Record]
    ) -> tuple[Record, Worker | None]:
        seen = _Seen()
        holder = [worker]
        threads = settings.threads if self.kernel.address.backend == "njit" else 1
        prior = settings.plain.prior(self.op, self.dtype, here.device)
        conditions = Conditions(here, settings.plain, prior, settings.parameters, threads)

        def attempt(workload: Workload, deep: bool = True) -> Outcome:
            worker = holder[0] or settings.pool.worker(self.kernel.address.backend, here.mode)
            holder[0] = worker
            outcome = trial.run(worker, self.kernel, self.op, workload, replace(conditions, deep=deep))
            if outcome.lost:
                worker.close()
                holder[0] = None
            return outcome

        def fails(workload: Workload) -> bool:
            if settings.stop.is_set():
                return True
            outcome = attempt(workload, deep=self.workload is not None or seen.workloads < _CLOSELY)
            seen.workloads += 1
            seen.add(workload, outcome)
            if outcome.finding:
                seen.failure = (workload, outcome)
            return outcome.finding is not None

        try:
            if self.workload is not None:
                fails(self.workload)
            else:
                count = settings.workloads or (INTERPRETED if here.level is Level.INTERPRET else NATIVE)
                sizes = _SIZES["cuda" if here.device == "cuda" else here.mode]
                fuzz.explore(self.op, self.dtype, count, sizes, settings.seed, fails)
            if seen.failure:
                failed = self._failed(seen, here, attempt, record)
                return races.looked_for(failed, self.kernel, self.op, settings.parameters), holder[0]
            if self.workload is None:
                seen.beyond = attempt(self._outside(here)).beyond
        except WorkerLost as lost:
            return record(Status.INCONCLUSIVE, f"no worker: {lost.detail}"), None
        return self._passed(seen, here, record), holder[0]

    def _outside(self, here: Availability) -> Workload:
        """A workload beyond the declared range, for the report alone."""
        size = 64 if here.level is Level.RUN else 16
        axes = tuple((n, max(a.min, min(a.max, size, a.typical))) for n, a in self.op.axes.items())
        return Workload(axes, self.dtype, tuple((n, a.default) for n, a in self.op.attributes.items()), values="beyond")

    def _passed(self, seen: _Seen, here: Availability, record: Callable[..., Record]) -> Record:
        evidence = seen.evidence(here)
        artifacts = list({a["text_hash"]: a for a in seen.artifacts}.values())
        powerless = [k for k, (rejected, tried) in seen.controls.items() if tried and not rejected]
        if powerless and self.workload is None:
            return record(
                Status.INCONCLUSIVE,
                f"the check has no power here: {', '.join(powerless)} would have passed too",
                None,
                evidence,
                artifacts,
            )
        worst = max((e["share"] for e in seen.errors.values()), default=0.0)
        how = (
            f" in {'Triton’s interpreter' if here.mode == 'triton-interpret' else 'Numba’s simulator'}"
            if here.level is Level.INTERPRET
            else ""
        )
        bits = "" if not seen.nondeterministic else "; not bitwise deterministic"
        ratio = next((e["ratio"] for e in seen.errors.values() if e["share"] == worst), 1.0)
        against = f", {ratio:.2g}× PyTorch's error" if worst else ""
        plural = "s" if seen.workloads != 1 else ""
        return record(
            Status.PASS,
            f"{seen.workloads} workload{plural}{how}; worst error {worst:.0%} of its limit{against}{bits}",
            None,
            evidence,
            artifacts,
        )

    def _failed(
        self, seen: _Seen, here: Availability, attempt: Callable[[Workload], Outcome], record: Callable[..., Record]
    ) -> Record:
        assert seen.failure is not None
        workload, outcome = seen.failure
        finding = outcome.finding
        assert finding is not None
        if self.workload is None and finding.detector not in _SLOW:
            latest, detector = {workload: outcome}, finding.detector

            def same(candidate: Workload) -> bool:
                latest[candidate] = attempt(candidate)
                again = latest[candidate].finding
                return again is not None and again.detector == detector

            workload = fuzz.shrink(self.op, workload, same)
            finding = latest[workload].finding or finding
        evidence = seen.evidence(here) | {"detector": finding.detector, "found_at": str(seen.failure[0])}
        if trace := outcome.detail.get("trace"):
            evidence["trace"] = trace
        return record(Status.FAIL, self._words(finding), workload, evidence)

    @staticmethod
    def _words(finding: Finding) -> str:
        return f"{finding.detector}: {finding.what}"

    def _build(
        self, settings: Settings, worker: Worker | None, here: Availability, record: Callable[..., Record]
    ) -> tuple[Record, Worker | None]:
        """Build every instance that the edges of the contract would launch."""
        built: dict[tuple[str, str], dict[str, Any]] = {}
        tried = 0
        points = [self.workload] if self.workload else list(fuzz.edges(self.op, self.dtype, _SIZES["native"]))
        try:
            worker = worker or settings.pool.worker(self.kernel.address.backend, here.mode)
            for workload in points:
                ask = message(
                    self.kernel,
                    self.op,
                    workload,
                    Layout(self.kernel, self.op, workload, 1),
                    here.mode,
                    settings.parameters,
                )
                answer = worker.ask(ask | {"do": "build", "target": str(settings.target)})
                if "error" in answer:
                    finding = trial.raised(answer["error"]).finding
                    assert finding is not None
                    return record(
                        Status.FAIL,
                        self._words(finding),
                        workload,
                        {"detector": finding.detector, "trace": answer["error"]["trace"]},
                    ), worker
                tried += 1
                for launch in answer["launches"]:
                    a = launch["artifact"]
                    built[a["name"], a["text_hash"]] = a | {
                        "grid": launch["grid"],
                        "block": launch["block"],
                        "dynamic_shared": launch["shared"],
                    }
        except WorkerLost as lost:
            return record(Status.FAIL, f"{lost.how}: {lost.detail}", None, {"detector": lost.how}), None
        if not built:
            return record(
                Status.FAIL,
                f"launch: the kernel launches nothing on any of {tried} workloads",
                None,
                {"detector": "launch"},
            ), worker
        evidence = {"workloads": tried, "mode": here.mode, "device": here.device, "instances": len(built)}
        names = ", ".join(sorted({name for name, _ in built}))
        reason = f"{here.reason}; {len(built)} instance{'s' * (len(built) > 1)} for {settings.target}: {names}"
        return record(Status.COMPILED, reason, None, evidence, list(built.values())), worker
