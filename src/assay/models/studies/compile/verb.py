"""Study of torch.compile: the cost of compiling from a cold process, from a warm disk cache and in a warm process, the
gain, and the number of calls after which it pays off. `assay model compile` prints the records."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from assay.backends import Level, backend
from assay.bench.statistics import Estimate, estimate, ratio
from assay.models.studies.compile.evidence import CompileEvidence, break_even
from assay.models.studies.compile.planning import FIRST, STATES, Case, Effort, Options, Plan, plan
from assay.models.studies.study import Child, Failure, record
from assay.record import Record, Status
from assay.settings import settings_of
from assay.worker.fresh import Tick


def compile_study(model: str, options: Options | None = None, **settings: Any) -> Iterator[Record]:
    """Study torch.compile on a model: a name of the registry, or `module:function`. Yield a record for each state."""
    chosen = options or settings_of(Options, settings)
    yield from run(plan(model, chosen), chosen)


def run(plans: list[Plan], options: Options, tick: Tick = lambda text: None) -> Iterator[Record]:
    for cases in plans:
        if why := _cannot(cases[0]):
            yield from (_record(case, options, Status.SKIPPED, why) for case in cases)
            continue
        with tempfile.TemporaryDirectory(prefix="assay-compile-") as folder:
            yield from _states(cases, options, Path(folder), tick)


def _cannot(case: Case) -> str:
    if case.backend == "inductor" and (here := backend("inductor").availability()).level is not Level.RUN:
        return f"{here.reason}; {here.fix}"
    if case.backend == "inductor" and case.device == "cpu" and not (shutil.which("g++") or shutil.which("c++")):
        return "inductor needs a C++ compiler on the CPU; apt-get install g++"  # even if a GPU here needs none
    if case.mode == "reduce-overhead" and case.device == "cpu":
        return "reduce-overhead is CUDA graphs: on a CPU it is the default mode"
    return ""


def _states(cases: Plan, options: Options, caches: Path, tick: Tick) -> Iterator[Record]:
    """Yield the records of all states. The cold state fills the caches that the others use; if it is needed but was not
    requested, it is run only to compile."""
    failed: Failure | None = None
    if cases[0].state == "disk" and cases[0].backend == "inductor":
        try:
            _ask(cases[0].at("cold"), options, replace(options.effort, rounds=0), caches, tick)
        except Failure as failure:
            failed = failure
    for case in cases:
        if failed:
            why = f"the process before it failed: {str(failed).splitlines()[0]}"
            yield _record(case, options, Status.SKIPPED, why)
        elif case.state == "disk" and case.backend != "inductor":
            yield _record(case, options, Status.SKIPPED, f"{case.backend} keeps nothing on disk")
        else:
            began = time.monotonic()
            try:
                answer = _ask(case, options, options.effort, caches, tick)
            except Failure as failure:
                failed = failure if failure.status is Status.FAIL else None
                evidence = _evidence(case, failure=failure.evidence if failed else None)
                yield _record(case, options, failure.status, str(failure), evidence, time.monotonic() - began)
            else:
                judged = _swept if case.state == "sweep" else _judged
                yield judged(case, options, answer, time.monotonic() - began)


def environment(caches: Path) -> dict[str, str]:
    """Return the environment that puts every cache of compiling into a folder of its own."""
    places = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton", "CUDA_CACHE_PATH": "cuda"}
    return {name: str(caches / folder) for name, folder in places.items()}


def _ask(case: Case, options: Options, effort: Effort, caches: Path, tick: Tick) -> dict[str, Any]:
    name = f"{case.model} {case.sizes} {case.state}"
    module = "assay.models.studies.compile.child"
    with Child(module, environment(caches), options.timeout, lambda text: tick(f"{name}: {text}")) as child:
        try:
            return child.ask(case=asdict(case), effort=asdict(effort))
        except Failure as failure:
            raise failure.mistake or failure from None


def _judged(case: Case, options: Options, answer: dict[str, Any], seconds: float) -> Record:
    samples = answer.pop("samples")
    steady = {arm: estimate(rounds) for arm, rounds in samples.items()}
    speedup = ratio(samples["eager"], samples["compiled"])

    def beyond(calls: list[float]) -> float:
        return max(0.0, sum(calls) - FIRST * steady["compiled"].median)

    cost = beyond(answer["first_seconds"])
    # In a warm process the remaining cost is noise.
    worth = break_even(cost if case.state != "warm" else 0.0, samples["eager"], samples["compiled"])
    answer |= {
        "compile_seconds": cost,
        "again": beyond(answer["again_seconds"]) if case.state == "warm" else None,
        "steady": steady,
        "eager_samples": samples["eager"],
        "speedup": speedup,
        "break_even": worth,
    }
    if held := answer.get("device_samples"):
        answer["device_steady"] = {arm: estimate(rounds) for arm, rounds in held.items()}
    evidence = _evidence(case, **answer)
    status, reason = _verdict(case, evidence)
    reason = reason or f"{speedup.median:.2f}× eager; {cost:.3g} s to compile; {worth}"
    return _record(case, options, status, reason, evidence, seconds, steady["compiled"], samples["compiled"])


def _verdict(case: Case, evidence: CompileEvidence) -> tuple[Status, str]:
    """Return the status and its reason: wrong outputs, or a state that was not really cold or cached. The reason is
    empty if both are right."""
    assert evidence.outputs and evidence.counts
    if off := evidence.outputs.wrong:
        return Status.FAIL, off
    cache = evidence.counts.cache
    if case.backend == "inductor" and case.state == "cold" and not cache.misses:
        return Status.INCONCLUSIVE, f"not cold: nothing was compiled anew ({cache.hits} found in a cache)"
    if case.backend == "inductor" and case.state == "disk" and (cache.misses or not cache.hits):
        graphs = cache.hits + cache.misses + cache.bypassed
        return Status.INCONCLUSIVE, f"the disk cache held {cache.hits} of {graphs} graphs"
    return Status.PASS, ""


def _swept(case: Case, options: Options, answer: dict[str, Any], seconds: float) -> Record:
    for step in answer["steps"]:
        step["compile_seconds"] = max(0.0, step["first_seconds"][0] - statistics.median(step["first_seconds"][1:]))
    evidence = _evidence(case, **answer)
    steps = evidence.steps or []
    off = [f"batch {step.batch}: {step.outputs.wrong}" for step in steps if step.outputs.wrong]
    first, again = steps[0].compilations, evidence.recompiles
    total = sum(step.compile_seconds for step in steps)
    reason = f"{len(steps)} batch sizes: {first} compiled at first, {again} again; {total:.3g} s in all"
    status = Status.FAIL if off else Status.PASS
    return _record(case, options, status, off[0] if off else reason, evidence, seconds)


def _evidence(case: Case, **answer: Any) -> CompileEvidence:
    return CompileEvidence.read({**asdict(case), "state_means": STATES[case.state], **answer})


def _record(
    case: Case,
    options: Options,
    status: Status,
    reason: str,
    evidence: CompileEvidence | None = None,
    seconds: float = 0.0,
    steady: Estimate | None = None,
    samples: list[list[float]] | None = None,
) -> Record:
    effort = options.effort
    return record(
        case.model,
        str(case),
        case.replay(effort.limit),
        status,
        reason,
        evidence or _evidence(case),
        run=options.run,
        seed=effort.seed,
        seconds=seconds,
        steady=steady,
        samples=samples,
    )
