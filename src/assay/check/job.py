"""Checks one kernel in one dtype: builds it, or fuzzes it, and writes the record."""

import contextlib
import shlex
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from assay import host, provenance
from assay.backends import Availability, Level, backend
from assay.backends import here as available
from assay.catalog.called import called
from assay.catalog.tunables import tuned
from assay.check import building, past_32_bits, programs, racecheck, races, undefined_lanes
from assay.check.evidence import CheckEvidence
from assay.check.exploring import Bounds, Exploration
from assay.check.judge import Finding
from assay.check.outcome import Conditions
from assay.check.plain import VENDOR, PlainTorch
from assay.check.seen import Seen
from assay.coverage.again import AGAIN
from assay.dtype import DType
from assay.inspect.evidence import Gates
from assay.inspect.verb import LANGUAGES, gates
from assay.kernel import Kernel
from assay.op import Op
from assay.record import Record, Status
from assay.target import Target
from assay.worker import Pool, Worker, WorkerLost
from assay.workload import Workload

_ENOUGH = 16
"""The number of workloads that suffices for a verdict on a peer that refuses all others."""
_ENOUGH_INTERPRETED = 8
"""The number that suffices if all others have more programs than the interpreter runs."""

_LISTED = ("triton", "numba")
"""Languages all of whose launches on a GPU are listed among the artifacts."""


@dataclass(frozen=True)
class Settings:
    """The settings that all jobs of a run share."""

    pool: Pool
    plain: PlainTorch
    target: Target
    bounds: Bounds
    parameters: dict[str, Any]
    run: str
    threads: int
    stop: threading.Event


@dataclass(frozen=True)
class Job:
    kernel: Kernel
    op: Op
    dtype: DType
    workload: Workload | None = None
    """The only workload to check; None to fuzz."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Tunables of this job alone, which override those that all jobs of the run share."""

    def run(self, settings: Settings, worker: Worker | None) -> tuple[Record, Worker | None]:
        """Return the record, and the worker if it is still healthy."""
        began = time.perf_counter()
        here = available(self.kernel)
        given = {**settings.parameters, **self.parameters}
        settings = replace(settings, parameters=tuned(self.kernel, self.op, given))

        def record(
            status: Status,
            reason: str,
            workload: Workload | None = None,
            evidence: CheckEvidence | None = None,
            artifacts: list[dict[str, Any]] | None = None,
        ) -> Record:
            shown = workload or self.workload
            known = replace(
                evidence or CheckEvidence(),
                asked_workloads=settings.bounds.workloads,
                parameters=settings.parameters or None,
            )
            return Record(
                "check",
                self.kernel.name,
                str(shown) if shown else f"dtype={self.dtype}",
                status,
                reason,
                settings.run,
                known.to_dict(),
                self.replay(shown, settings.parameters, settings.target),
                provenance.source_of(self.kernel.home, self.kernel.line),
                artifacts or [],
                provenance.provenance(settings.bounds.seed),
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
        if self.workload and not past_32_bits.in_memory(self.kernel, self.workload):
            return self._without_memory(self.workload, settings, worker, record)
        look_past = past_32_bits.beside(
            self.kernel,
            self.op,
            self.dtype,
            self.workload,
            here,
            settings.parameters,
            settings.pool,
            settings.bounds.thorough,
        )
        does = self._build if here.level is Level.COMPILE else self._fuzz
        look_for_races = self._look_for_races(settings, here)
        broken = self._broken_gates(settings, meanwhile=here.device == "cuda")
        outcome, worker = does(settings, worker, here, record)
        if here.level is Level.INTERPRET:
            outcome = self._compiled(outcome, settings, record) if outcome.status is Status.PASS else outcome
        elif self.kernel.address.backend in LANGUAGES and (here.level is Level.COMPILE or not outcome.failed):
            outcome = _for_target(outcome, settings.target)
        outcome, worker = look_past(outcome, worker)
        return look_for_races(self._gated(outcome, broken)), worker

    def _without_memory(
        self, workload: Workload, settings: Settings, worker: Worker | None, record: Callable[..., Record]
    ) -> tuple[Record, Worker | None]:
        seen, worker = past_32_bits.look(self.kernel, [workload], settings.parameters, settings.pool, worker)
        reason = f"too large to interpret: of {seen.programs} programs only the addresses were looked at"
        reason += f" ({seen.trouble})" if seen.trouble else ""
        undecided = record(Status.INCONCLUSIVE, reason, None, CheckEvidence(mode=past_32_bits.MODE, device="cpu"))
        return past_32_bits.joined(undecided, seen, refused=True), worker

    def _conditions(self, settings: Settings, here: Availability) -> Conditions:
        threads = settings.threads if self.kernel.address.backend == "njit" else 1
        prior = partial(settings.plain.prior, self.op, self.dtype, here.device)
        return Conditions(here, settings.plain, prior, settings.parameters, threads)

    def _look_for_races(self, settings: Settings, here: Availability) -> races.Join:
        conditions, bounds = self._conditions(settings, here), settings.bounds
        return races.beside(
            self.kernel,
            self.op,
            self.dtype,
            self.workload,
            settings.pool,
            conditions,
            settings.run,
            bounds.seed,
            bounds.deadline,
            settings.stop.is_set,
        )

    def _compiled(self, passed: Record, settings: Settings, record: Callable[..., Record]) -> Record:
        """Build a kernel that passed in an interpreter, which accepts more than a compiler does (a `break`, a range
        that is no power of two)."""
        points = [self.workload] if self.workload else building.specializations(self.op, self.dtype)
        if settings.bounds.thorough and not self.workload:
            points += building.edges(self.op, self.dtype)
        try:
            built = building.build(
                self.kernel, self.op, points, "native", settings.parameters, settings.target, settings.pool, None
            )
        except WorkerLost:  # not the kernel's fault: the verdict on the values remains
            return passed
        if built.worker:
            built.worker.close()
        if built.finding is None:
            return _for_target(passed, settings.target)
        if built.idle and self.workload is None and self.kernel.address.backend == "numba":
            return _nothing_launched(self.kernel, built.workloads, CheckEvidence.of(passed), record)
        if built.finding.detector != "build" or "refused" not in built.finding.what:
            return passed  # no compiler is available
        words = f"it passed in an interpreter, and does not compile for {settings.target}: {built.finding.what}"
        # A replay interprets its workload first; the typical one is too large for that, so it names the dtype alone.
        at = built.workload if built.workload != points[0] else None
        evidence = replace(
            CheckEvidence.of(passed), detector="build", trace=built.trace, found_at=str(built.workload or points[0])
        )
        return _for_target(record(Status.FAIL, f"build: {words}", at, evidence), settings.target)

    def _broken_gates(self, settings: Settings, meanwhile: bool) -> Callable[[], list[str]]:
        """Return a function that returns the gates that the kernel's code breaks. They are computed when it is called
        or, with `meanwhile`, in a thread from now on."""
        typical = Workload.of(self.op, f"dtype={self.dtype}")
        compute = partial(gates, self.kernel, typical, settings.target, settings.pool)
        if not meanwhile or not self.kernel.expects:
            return compute
        thread = ThreadPoolExecutor(1)
        asked = thread.submit(compute)
        thread.shutdown(wait=False)
        return asked.result

    def _gated(self, judged: Record, broken_gates: Callable[[], list[str]]) -> Record:
        """Check the gates of a correct kernel: its code may still not be what its author expects."""
        if not self.kernel.expects or judged.status not in (Status.PASS, Status.COMPILED):
            return judged
        broken = broken_gates()
        evidence = replace(CheckEvidence.of(judged), gates=Gates(dict(self.kernel.expects), broken))
        if not broken:
            return replace(judged, evidence=evidence.to_dict())
        evidence = replace(evidence, detector="gate")
        return replace(judged, status=Status.FAIL, reason="; ".join(broken), evidence=evidence.to_dict())

    def replay(self, workload: Workload | None, parameters: Mapping[str, Any], target: Target | None = None) -> str:
        """Return the command that repeats this check."""
        which = f"--workload {shlex.quote(str(workload))}" if workload else f"--dtype {self.dtype}"
        built_for = f" --target {target}" if target not in (None, host.target()) else ""
        return f"assay check {called(self.kernel, self.op, parameters)} {which}{built_for}"

    def _fuzz(
        self, settings: Settings, worker: Worker | None, here: Availability, record: Callable[..., Record]
    ) -> tuple[Record, Worker | None]:
        conditions = self._conditions(settings, here)
        if here.device == "cuda":  # its worker starts while the kernel's does
            threading.Thread(target=_tried, args=(conditions.prior,), daemon=True).start()
        exploring = Exploration(
            self.kernel, self.op, self.dtype, settings.pool, worker, conditions, settings.stop.is_set
        )
        try:
            if self.workload is not None:
                exploring.one(self.workload)
            else:
                exploring.run(settings.bounds, settings.target)
            if exploring.seen.failure:
                failed = self._failed(exploring, record)
                return racecheck.explained(failed, self.kernel, self.op, settings.parameters), exploring.worker
            if self.workload is None:
                exploring.outside(self._outside(here))
        except WorkerLost as lost:
            done = f"after {exploring.seen.workloads} workloads that passed" if lost.blameless else "no worker"
            return record(Status.INCONCLUSIVE, f"{done}: {lost.detail}", None, exploring.seen.evidence(here)), None
        finally:
            exploring.close()
        return self._passed(exploring.seen, here, record), exploring.worker

    def _outside(self, here: Availability) -> Workload:
        """Return a workload beyond the declared range, which is tried only for the report."""
        size = 64 if here.level is Level.RUN else 16
        axes = tuple((n, max(a.min, min(a.max, size, a.typical))) for n, a in self.op.axes.items())
        attributes = tuple((n, a.default) for n, a in self.op.attributes.items())
        return Workload(self.op, axes, self.dtype, attributes, values="beyond")

    def _passed(self, seen: Seen, here: Availability, record: Callable[..., Record]) -> Record:
        evidence = seen.evidence(here)
        if self.kernel.peer and not seen.workloads and "the time limit" not in seen.left_out:
            return record(Status.SKIPPED, "; ".join(seen.left_out), None, evidence)
        artifacts = list({a["text_hash"]: a for a in seen.artifacts}.values())
        if why := self._undecided(seen):
            return record(Status.INCONCLUSIVE, why, None, evidence, artifacts)
        if self.workload is None and self._idle(seen, here):
            return _nothing_launched(self.kernel, seen.workloads, evidence, record)
        worst = max((e.share for e in seen.errors.values()), default=0.0)
        how = (
            f" in {'Triton’s interpreter' if here.mode == 'triton-interpret' else 'Numba’s simulator'}"
            if here.level is Level.INTERPRET
            else ""
        )
        bits = "" if not seen.nondeterministic else "; not bitwise deterministic"
        against = f", {seen.ratio:.2g}× PyTorch's largest" if worst else ""
        if seen.admitted:
            against += f"; on {seen.admitted} it loses as much as one float32 accumulator for each sum would"
        for library, where in seen.torch_wrong.items():
            against += f"; on {len(where)} PyTorch itself is wrong with {library}"
        plural = "s" if seen.workloads != 1 else ""
        left = "".join(
            f"; {len(rows)} {'refused by it' if why in seen.refused else 'left out'}: {why}"
            for why, rows in seen.left_out.items()
        )
        if missed := seen.not_launched:
            left += f"; not launched here: {', '.join(missed)}"
        return record(
            Status.PASS,
            f"{seen.workloads} workload{plural}{how}; worst error {worst:.0%} of its tolerance{against}{bits}{left}",
            None,
            evidence,
            artifacts,
        )

    def _idle(self, seen: Seen, here: Availability) -> bool:
        """Return whether the kernel was right without a launch in its language, as far as launches are counted here.
        Numba's simulator does not count them: what is built tells."""
        if self.kernel.peer:
            return False
        if here.mode == "triton-interpret":
            return not any(programs for _, programs in seen.launched)
        return here.device == "cuda" and self.kernel.address.backend in _LISTED and not seen.artifacts

    def _undecided(self, seen: Seen) -> str:
        """Return why the results are no verdict; empty if they are one."""
        if not seen.workloads:
            reasons = ", ".join(seen.left_out) or "nothing could be run"
            return f"no workload was tried: {reasons}"
        if "the time limit" in seen.left_out:
            left = len(seen.left_out["the time limit"])
            plural = "s" if seen.workloads != 1 else ""
            told = f"{seen.workloads} workload{plural} passed; --limit left out {left} of {seen.workloads + left}"
            return f"{told}\n  → give it more time, or plan fewer: --workloads {max(1, seen.workloads // 2)}"
        excused = set(seen.refused) if seen.first >= _ENOUGH else set()
        excused |= seen.limits if seen.first >= _ENOUGH_INTERPRETED else set()
        left_out = sum(r.why != AGAIN for why, rows in seen.left_out.items() if why not in excused for r in rows)
        if left_out > seen.first or any("lacks" in why for why in seen.left_out):
            planned = seen.first + left_out
            slow = any("interpreter" in why and "lacks" not in why for why in seen.left_out)
            helps = programs.advice(self.op, seen.launched) if slow else ""
            return f"only {seen.first} of {planned} workloads could be run: {'; '.join(seen.left_out)}{helps}"
        powerless = [k for k, (rejected, tried) in seen.controls.items() if tried and not rejected]
        if powerless and self.workload is None:
            return f"the check has no power here: {', '.join(powerless)} would have passed too"
        return ""

    def _failed(self, exploring: Exploration, record: Callable[..., Record]) -> Record:
        seen = exploring.seen
        assert seen.failure is not None
        workload, outcome = seen.failure
        finding = outcome.finding
        assert finding is not None
        if self.workload is None:
            workload, finding = exploring.smaller(finding)
        shown = None if finding.detector == "state" else workload  # repeating it takes the other workloads too
        evidence = replace(
            seen.evidence(exploring.here),
            detector=finding.detector,
            found_at=str(seen.failure[0]),
            trace=outcome.detail.get("trace") or "",
        )
        if finding.excused_in(self.kernel):
            words = f"a peer, less accurate than the tolerance for our own kernels: {finding.what}"
            return record(Status.INCONCLUSIVE, words, shown, evidence)
        words = self._words(finding)
        if finding.detector == "nonfinite" and exploring.here.mode == "triton-interpret":
            words += undefined_lanes.advice(self.kernel.file)
        vendors = outcome.torch_wrong in VENDOR.values()
        if outcome.torch_wrong and (not vendors or self.kernel.peer or self.kernel.address.backend == "torch"):
            words = f"PyTorch itself is wrong with {outcome.torch_wrong}; {words}"
        excused = outcome.torch_wrong and self.kernel.peer
        return record(Status.INCONCLUSIVE if excused else Status.FAIL, words, shown, evidence)

    @staticmethod
    def _words(finding: Finding) -> str:
        first, *steps = finding.what.split("\n")
        return "\n".join([f"{finding.detector}: {first}", *finding.details, *steps])

    def _build(
        self, settings: Settings, worker: Worker | None, here: Availability, record: Callable[..., Record]
    ) -> tuple[Record, Worker | None]:
        if self.workload:
            points = [self.workload]
        else:
            points = building.launched(self.op, self.dtype)
            points += building.for_launches(
                self.kernel, self.op, self.dtype, points, settings.parameters, settings.target, settings.pool
            )
        built = building.build(
            self.kernel,
            self.op,
            points,
            here.mode,
            settings.parameters,
            settings.target,
            settings.pool,
            worker,
            settings.bounds.deadline,
        )
        if built.finding:
            evidence = CheckEvidence(detector=built.finding.detector, trace=built.trace)
            return record(Status.FAIL, self._words(built.finding), built.workload, evidence), built.worker
        if built.left:
            words = f"{built.workloads} workloads were built; --limit left out {built.left} of {len(points)}"
            return record(Status.INCONCLUSIVE, words, None, CheckEvidence(workloads=built.workloads)), built.worker
        instances = list(built.instances.values())
        evidence = CheckEvidence(
            workloads=built.workloads, mode=here.mode, device=here.device, instances=len(instances)
        )
        names = ", ".join(sorted({name for name, _ in built.instances}))
        plural = "s" * (len(instances) > 1)
        reason = f"{here.reason}; {len(instances)} instance{plural} for {settings.target}: {names}"
        if not instances:
            reason = f"{here.reason}; nothing is launched, since the outputs are empty"
        return record(Status.COMPILED, reason, None, evidence, instances), built.worker


def _nothing_launched(kernel: Kernel, workloads: int, evidence: CheckEvidence, record: Callable[..., Record]) -> Record:
    finding = building.nothing_launched(kernel, workloads)
    evidence = replace(evidence, detector=finding.detector)
    return record(Status.FAIL, f"{finding.detector}: {finding.what}", None, evidence)


def _for_target(judged: Record, target: Target) -> Record:
    """Return the record with the target that the code was built for: for another one, the verdict may differ."""
    return replace(judged, evidence=replace(CheckEvidence.of(judged), target=str(target)).to_dict())


def _tried(compute: Callable[[], Any]) -> None:
    """Compute a value that is kept; an error is raised again where the value is needed."""
    with contextlib.suppress(Exception):
        compute()
