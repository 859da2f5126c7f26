"""The verb itself: times kernels alone, then runs every variant in its own process, with a record per measurement."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

from assay.bench.statistics import estimate
from assay.errors import AssayError
from assay.models.studies.infer import unswapped
from assay.models.studies.infer.alone import Times, times
from assay.models.studies.infer.evidence import Called, InferEvidence
from assay.models.studies.infer.joined import layers, rows
from assay.models.studies.infer.planning import CHILD, Case, Options, Plan, plan
from assay.models.studies.infer.variants import BASELINE, OWN, Variant, named
from assay.models.studies.infer.verdict import Measured, record, skipped
from assay.models.studies.study import Child, Failure
from assay.models.subject.data.datasets import DATASETS
from assay.models.subject.registry import entry
from assay.record import Record, Status
from assay.settings import settings_of
from assay.worker import WorkerLost
from assay.worker.fresh import Tick
from assay.worker.process import MODES

_ENVIRONMENT = {
    "TEARDOWN_CUPTI": "0",
    "DISABLE_CUPTI_LAZY_REINIT": "1",  # starting CUPTI takes seconds, so it stays on
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # a compile pool would take longer to start than it saves
}
INTERPRETED = (1,)
"""Batch sizes for interpreters and simulators, whose times are meaningless."""


def infer(model: str, options: Options | None = None, **settings: Any) -> Iterator[Record]:
    """Run a model (a name of the registry, or `module:function`) with the same weights in every variant. Yield a record
    for each variant, arm and batch size."""
    yield from run(plan(model, options or settings_of(Options, settings)))


def run(planned: Plan, tick: Tick = lambda text: None) -> Iterator[Record]:
    if planned.cannot:
        yield skipped(planned, Case(planned.subject, BASELINE, {}), planned.cannot)
        return
    if planned.left_out:
        yield skipped(planned, Case(planned.subject, planned.variants[0].name, {}), planned.left_out)
    for variant in (v for v in planned.variants if v.cannot):
        yield skipped(planned, Case(planned.subject, variant.name, variant.rules), variant.cannot)
    alone = times(planned, tick)
    processes = [Process(planned, v, tick) for v in planned.variants if not v.cannot]
    try:
        if planned.subject.device == "cuda":
            prepare_all(processes)
        for process in processes:
            if process.about is None and process.failure is None:
                process.prepare()
            yield from _records(process, alone)
            process.end()
    finally:
        for process in processes:
            process.close()


class Process:
    """One variant's process, started in the mode its kernels need, and again without graphs if a capture fails."""

    def __init__(self, planned: Plan, variant: Variant, tick: Tick) -> None:
        self.planned, self.variant = planned, variant
        self._tick: Tick = lambda text: tick(f"{variant.name}: {text}")
        self.batches = INTERPRETED if variant.interpreted else planned.batches
        self.arms: tuple[str, ...] = tuple(a for a in planned.arms if not variant.interpreted or a == "eager") or (
            "eager",
        )
        self.refused: dict[str, str] = {}
        """Arm → why it is not run."""
        if "graphed" in self.arms and planned.subject.device == "cpu":
            self.refuse("graphed", "CUDA graphs are of a GPU")
        self.about: dict[str, Any] | None = None
        """The answer to `prepare`."""
        self.failure: Failure | None = None
        self._child: Child | None = None
        self._over = False

    def refuse(self, arm: str, why: str) -> None:
        self.arms = tuple(a for a in self.arms if a != arm)
        self.refused[arm] = why

    def prepare(self) -> None:
        """Build, swap and compile, before the first measurement. A failure is kept to be recorded."""
        try:
            self.about = self._prepare()
            if why := self.about.get("failures", {}).get("graphed"):
                ((whose, what),) = why.items()
                self.refuse("graphed", what if whose == "variant" else f"torch itself: {what}")
                if self.arms:
                    self.about = self._prepare()
        except Failure as failure:
            if failure.mistake and self.variant.name == OWN:  # the user's own rules
                raise failure.mistake from None
            self.failure = failure

    def _prepare(self) -> dict[str, Any]:
        planned = self.planned
        if self._child is not None:
            self._child.close()
        if self._over:
            raise Failure(WorkerLost("start", "it was ended before it began"))
        self._child = Child(CHILD, _ENVIRONMENT | MODES[self.variant.mode], planned.options.timeout, self._tick)
        return self._child.ask(
            do="prepare",
            subject=asdict(planned.subject),
            rules=dict(self.variant.rules),
            arms=list(self.arms),
            batches=list(self.batches),
            budget=planned.budget,
            effort=asdict(planned.options.effort),
            backend=planned.options.backend,
        )

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        assert self._child is not None
        return self._child.ask(do=do, **more)

    def ask_once(self, do: str, **more: Any) -> dict[str, Any]:
        """Return the answer, or the reason why there is none."""
        try:
            return self.ask(do, **more)
        except Failure as failure:
            return {do: {"why": str(failure).splitlines()[0]}}

    def end(self) -> None:
        """Undo the swap, which restores weights that it moved to a file, and end the process."""
        if self.about is not None:
            with contextlib.suppress(Failure):
                self.ask("undo")
        self.close()

    def close(self) -> None:
        self._over = True
        if self._child is not None:
            self._child.close()


def prepare_all(processes: list[Process]) -> None:
    """Prepare all processes in parallel, before anything is timed: starting and compiling use the CPU, not the GPU."""
    with ThreadPoolExecutor(max(1, min(len(processes), (os.cpu_count() or 2) // 2))) as pool:
        waiting = [pool.submit(p.prepare) for p in processes]
        try:
            for one in waiting:
                one.result()
        except BaseException:
            for one in waiting:
                one.cancel()
            for process in processes:
                process.close()
            raise


def _records(process: Process, alone: Times) -> Iterator[Record]:
    planned, variant, about = process.planned, process.variant, process.about

    def case(arm: str = "", batch: int = 0) -> Case:
        return Case(planned.subject, variant.name, variant.rules, arm, batch)

    if about is None:
        assert process.failure is not None
        evidence = InferEvidence.read(case().about() | {"mode": variant.mode})
        yield record(planned, case(), process.failure.status, str(process.failure), evidence)
        return
    if not process.arms:
        for batch in process.batches:
            yield from (skipped(planned, case(arm, batch), why) for arm, why in process.refused.items())
        return
    if variant.rules and (idle := [batch for batch in process.batches if not about["sites"][str(batch)]]):
        evidence = InferEvidence.read(case().about() | {"mode": variant.mode, "swap": about["swap"]})
        why = unswapped.why(evidence.swap or (), variant.rules)
        if len(idle) == len(process.batches):
            yield record(planned, case(), Status.SKIPPED, f"{why}; {unswapped.instead(planned.ops)}", evidence)
            return
        process.batches = tuple(batch for batch in process.batches if batch not in idle)
        yield from (skipped(planned, case(arm, batch), why) for batch in idle for arm in process.arms)
    for batch, why in planned.too_long.items() if not variant.interpreted else ():
        yield from (skipped(planned, case(arm, batch), why) for arm in planned.arms)
    measured, failed = _measured(process)
    about |= _asked_once(process) if measured and not variant.interpreted else {}
    for batch, answer in measured.items():
        sites = [Called(**site) for site in about["sites"][str(batch)]]
        profile = answer.get("profile", {})
        taken = answer["arms"].get("eager", {}).get("samples", {})  # sites are profiled in the eager arm
        latency = {whose: estimate(samples).median for whose, samples in taken.items()}
        table = rows(sites, profile, alone if batch in planned.alone and not variant.interpreted else None, latency)
        one = Measured(planned, variant, about, answer, table, layers(profile))
        yield from (one.record(case(arm, batch), first=arm == process.arms[0]) for arm in process.arms)
        yield from (skipped(planned, case(arm, batch), why) for arm, why in process.refused.items())
    for batch, reason in failed.items():
        yield from (record(planned, case(arm, batch), Status.FAIL, reason) for arm in process.arms)


def _measured(process: Process) -> tuple[dict[int, dict[str, Any]], dict[int, str]]:
    """Return the measurements by batch size, and the reasons of failures by batch size. Profiling comes after all
    timing, because a GPU process is slower once a profiler has been on."""
    answers: dict[int, dict[str, Any]] = {}
    failed: dict[int, str] = {}
    arms, timed = list(process.arms), not process.variant.interpreted
    for batch in process.batches:
        began = time.monotonic()
        try:
            answers[batch] = process.ask("measure", arms=arms, batch=batch, timed=timed)
            answers[batch]["seconds"] = (time.monotonic() - began) / len(arms)
        except Failure as failure:
            failed[batch] = str(failure)
    for batch, answer in answers.items() if timed else ():
        try:
            answer |= process.ask("profile", arms=arms, batch=batch)
        except Failure as failure:
            answer["unprofiled"] = str(failure)
    return answers, failed


def _asked_once(process: Process) -> dict[str, Any]:
    """Measure what a call costs beyond the kernel, and the accuracy."""
    planned, variant = process.planned, process.variant
    ran = {site["kernel"] for sites in (process.about or {})["sites"].values() for site in sites}
    meant = named(variant.rules, planned.subject.device)
    kernels = {kernel.name: text for text, (kernel, _) in meant if kernel.name in ran}
    answers = process.ask_once("boundary", kernels=kernels) if kernels else {}
    wanted = planned.options.score
    if wanted or (wanted is None and _data_here(planned)):
        answers |= process.ask_once("score")
    return answers


def _data_here(planned: Plan) -> bool:
    known = entry(planned.subject.model)
    needed = DATASETS.get(known.data) or (known.published if known.data else None)
    try:
        return needed is not None and needed.here()
    except (AssayError, OSError):
        return False
