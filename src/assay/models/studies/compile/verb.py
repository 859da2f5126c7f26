"""torch.compile, studied: what compiling costs from a cold process, from a warm disk cache and in a warm process, what
it buys, and after how many calls it has paid. `assay model compile` prints what this yields."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assay import provenance
from assay.backends import Level, backend
from assay.bench.statistics import Estimate, estimate, ratio
from assay.dtype import dtype as format_called
from assay.errors import UsageError
from assay.models.studies.agreement import wrong
from assay.models.studies.compile.case import MODES, STATES, Case, Effort
from assay.models.studies.compile.child import FIRST
from assay.models.studies.compile.worth import break_even
from assay.models.studies.device import device as device_called
from assay.models.subject.registry import entry
from assay.record import Record, Status
from assay.worker import WorkerLost
from assay.worker.fresh import Fresh, Refused, Tick, last_words

_CHILD = "assay.models.studies.compile.child"


@dataclass(frozen=True)
class Options:
    """What a user may set."""

    batches: tuple[int, ...] = (64,)
    dtype: str = "fp32"
    device: str = ""
    """cuda or cpu; empty: the GPU where there is one."""
    states: tuple[str, ...] = ("cold", "disk", "warm", "sweep")
    """`sweep` needs more than one batch size."""
    modes: tuple[str, ...] = ("default",)
    dynamic: bool | None = None
    backend: str = "inductor"
    effort: Effort = field(default_factory=Effort)
    timeout: float = 600.0
    """Seconds for one process."""
    run: str = field(default_factory=provenance.new_run)


@dataclass(frozen=True)
class Plan:
    """States that share their caches, in order."""

    cases: tuple[Case, ...]


def plan(model: str, options: Options) -> list[Plan]:
    """One for each batch size and mode, and one more for the sweep over all sizes."""
    known = entry(model)
    _known("state", options.states, STATES)
    _known("mode", options.modes, MODES)
    if not options.batches or min(options.batches) < 1:
        raise UsageError("a batch has at least one element", fix="--batch 1,16,64")
    number = format_called(options.dtype).name
    if number not in known.dtypes or number == "fp64":  # float64 is what the others are held against
        fits = ", ".join(d for d in known.dtypes if d != "fp64")
        raise UsageError(f"{model} is not studied in {number}", fix=f"--dtype with one of {fits}")
    device = device_called(options.device)
    plans = []
    for mode in options.modes:
        base = Case(model, options.batches, number, device, "sweep", mode, options.dynamic, options.backend)
        for batch in options.batches:
            one = Case(model, (batch,), number, device, "", mode, options.dynamic, options.backend)
            if states := tuple(one.at(s) for s in STATES if s in options.states and s != "sweep"):
                plans.append(Plan(states))
        if "sweep" in options.states and len(options.batches) > 1:
            plans.append(Plan((base,)))
    if not plans:
        raise UsageError("a sweep is over more than one batch size", fix="--batch 1,16,64")
    return plans


def _known(what: str, named: tuple[str, ...], known: Any) -> None:
    for name in named:
        if name not in known:
            raise UsageError(f"no {what} called '{name}'", fix=f"--{what} {','.join(known)}")


def compile_study(model: str, options: Options | None = None, **settings: Any) -> Iterator[Record]:
    """Study torch.compile on a model: a name of the registry, or `module:function`. One record for each state."""
    chosen = options or Options(**settings)
    yield from run(plan(model, chosen), chosen)


def run(plans: list[Plan], options: Options, tick: Tick = lambda text: None) -> Iterator[Record]:
    for planned in plans:
        if why := _cannot(planned.cases[0]):
            yield from (_record(c, options, Status.SKIPPED, why, {}) for c in planned.cases)
            continue
        with tempfile.TemporaryDirectory(prefix="assay-compile-") as folder:
            yield from _states(planned.cases, options, Path(folder), tick)


def _cannot(case: Case) -> str:
    if case.backend == "inductor" and (here := backend("inductor").availability()).level is not Level.RUN:
        return f"{here.reason}; {here.fix}"
    if case.backend == "inductor" and case.device == "cpu" and not (shutil.which("g++") or shutil.which("c++")):
        return "inductor needs a C++ compiler on the CPU; apt-get install g++"  # also where a GPU needs none
    if case.mode == "reduce-overhead" and case.device == "cpu":
        return "reduce-overhead is CUDA graphs: on a CPU it is the default mode"
    return ""


def _states(cases: tuple[Case, ...], options: Options, caches: Path, tick: Tick) -> Iterator[Record]:
    """Cold fills the caches that the others find; where it was not asked for, it is done with less effort."""
    failed: _Failure | None = None
    if cases[0].state == "disk" and cases[0].backend == "inductor":
        filled = _ask(cases[0].at("cold"), options, replace(options.effort, rounds=0), caches, tick)
        failed = filled if isinstance(filled, _Failure) else None
    for case in cases:
        if failed:
            why = f"the process before it failed: {failed.reason.splitlines()[0]}"
            yield _record(case, options, Status.SKIPPED, why, {})
            continue
        if case.state == "disk" and case.backend != "inductor":
            yield _record(case, options, Status.SKIPPED, f"{case.backend} keeps nothing on disk", {})
            continue
        began = time.monotonic()
        found = _ask(case, options, options.effort, caches, tick)
        seconds = time.monotonic() - began
        if isinstance(found, _Failure):
            failed = found
            told = _about(case) | {"failure": found.told}
            yield _record(case, options, Status.FAIL, found.reason, told, seconds)
        elif "cannot" in found:
            yield _record(case, options, Status.SKIPPED, found["cannot"], {}, seconds)
        elif case.state == "sweep":
            yield _swept(case, options, found, seconds)
        else:
            yield _judged(case, options, found, seconds)


def environment(caches: Path) -> dict[str, str]:
    """Every cache that compiling leaves behind, in a folder of its own."""
    places = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton", "CUDA_CACHE_PATH": "cuda"}
    return {name: str(caches / folder) for name, folder in places.items()}


@dataclass(frozen=True)
class _Failure:
    reason: str
    told: dict[str, Any]
    """All that the process said of it."""


def _ask(case: Case, options: Options, effort: Effort, caches: Path, tick: Tick) -> dict[str, Any] | _Failure:
    """What the process found, or why it did not."""
    with Fresh(_CHILD, environment(caches)) as process:
        try:
            return process.ask(
                {"case": case.to_dict(), "effort": effort.to_dict()},
                options.timeout,
                lambda text: tick(f"{case.model} {case.sizes} {case.state}: {text}"),
            )
        except Refused as problem:
            if mistake := problem.wrong_use:
                raise mistake from None
            # A compiler's complaint may go on for pages; the record keeps them.
            first = next(filter(None, problem.what.splitlines()), "")
            return _Failure(str(problem) if problem.told["ours"] else first, problem.told)
        except WorkerLost as lost:
            return _Failure(last_words(lost), {"how": lost.how, "printed": lost.output})


def _judged(case: Case, options: Options, found: dict[str, Any], seconds: float) -> Record:
    samples = found.pop("samples")
    steady = {arm: estimate(rounds) for arm, rounds in samples.items()}
    speedup = ratio(samples["eager"], samples["compiled"])
    cost = max(0.0, sum(found["first_seconds"]) - FIRST * steady["compiled"].median)
    if case.state == "warm":
        found["again"] = max(0.0, sum(found["again_seconds"]) - FIRST * steady["compiled"].median)
    # In a warm process what is left is noise.
    worth = break_even(cost if case.state != "warm" else 0.0, samples["eager"], samples["compiled"])
    evidence = _about(case) | found
    evidence |= {
        "compile_seconds": cost,
        "steady": {arm: e.to_dict() for arm, e in steady.items()},
        "eager_samples": samples["eager"],
        "speedup": speedup.to_dict(),
        "break_even": worth.to_dict(),
    }
    if held := found.get("device_samples"):
        evidence["device_steady"] = {arm: estimate(rounds).to_dict() for arm, rounds in held.items()}
    status, reason = _verdict(case, found)
    reason = reason or f"{speedup.median:.2f}× eager; {cost:.3g} s to compile; {worth}"
    return _record(case, options, status, reason, evidence, seconds, steady["compiled"], samples["compiled"])


def _verdict(case: Case, found: dict[str, Any]) -> tuple[Status, str]:
    """Are the outputs right, and was the state what it is called? The reason is empty where both are so."""
    if off := wrong(found["outputs"], "eager", "compiled"):
        return Status.FAIL, off
    cache = found["counts"]["cache"]
    if case.backend != "inductor":
        return Status.PASS, ""
    if case.state == "cold" and not cache["misses"]:
        return Status.INCONCLUSIVE, f"not cold: nothing was compiled anew ({cache['hits']} found in a cache)"
    if case.state == "disk" and (cache["misses"] or not cache["hits"]):
        return Status.INCONCLUSIVE, (
            f"the disk cache held {cache['hits']} of {cache['hits'] + cache['misses'] + cache['bypassed']} graphs"
        )
    return Status.PASS, ""


def _swept(case: Case, options: Options, found: dict[str, Any], seconds: float) -> Record:
    told = ((s["batch"], wrong(s["outputs"], "eager", "compiled")) for s in found["steps"])
    off = [f"batch {batch}: {why}" for batch, why in told if why]
    for step in found["steps"]:
        # What the first call costs beyond the ones after it.
        step["compile_seconds"] = max(0.0, step["first_seconds"][0] - statistics.median(step["first_seconds"][1:]))
    total = sum(s["compile_seconds"] for s in found["steps"])
    first, again = found["steps"][0]["compilations"], found["recompiles"]
    reason = f"{len(found['steps'])} batch sizes: {first} compiled at first, {again} again; {total:.3g} s in all"
    status = Status.FAIL if off else Status.PASS
    return _record(case, options, status, off[0] if off else reason, _about(case) | found, seconds)


def _about(case: Case) -> dict[str, Any]:
    return {"study": "compile", **case.to_dict(), "state_means": STATES[case.state]}


def _replay(case: Case, options: Options) -> str:
    limit = options.effort.limit
    return case.replay() + (f" --recompile-limit {limit}" if limit else "")


def _record(
    case: Case,
    options: Options,
    status: Status,
    reason: str,
    evidence: dict[str, Any],
    seconds: float = 0.0,
    steady: Estimate | None = None,
    samples: list[list[float]] | None = None,
) -> Record:
    return Record(
        "model",
        case.model,
        str(case),
        status,
        reason,
        options.run,
        evidence or _about(case),
        _replay(case, options),
        source=provenance.source_of(entry(case.model).file),
        provenance=provenance.provenance(options.effort.seed),
        seconds=seconds,
        median=steady.median if steady else None,
        interval=steady.interval if steady else None,
        samples=samples,
    )
