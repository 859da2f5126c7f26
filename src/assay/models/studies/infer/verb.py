"""The verb itself: kernels alone first, then every variant in a process of its own; a record for each measurement."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from assay.errors import AssayError
from assay.models.studies.infer.alone import Times, times
from assay.models.studies.infer.case import BASELINE, Case
from assay.models.studies.infer.evidence import Measured, record, skipped
from assay.models.studies.infer.joined import layers, rows
from assay.models.studies.infer.options import Options
from assay.models.studies.infer.planning import Plan, plan
from assay.models.studies.infer.process import Broken, Process, prepare_all
from assay.models.studies.infer.site import called
from assay.models.studies.infer.variants import named
from assay.models.subject.registry import entry
from assay.record import Record, Status
from assay.worker.fresh import Tick


def infer(model: str, options: Options | None = None, **settings: Any) -> Iterator[Record]:
    """Run a model with the same weights through every variant: a name of the registry, or `module:function`. One record
    for each variant, arm and batch size."""
    yield from run(plan(model, options or Options(**settings)))


def run(planned: Plan, tick: Tick = lambda text: None) -> Iterator[Record]:
    if planned.cannot:
        yield skipped(planned, Case(planned.subject, BASELINE, {}), planned.cannot)
        return
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
            yield from _variant(process, alone)
            process.end()
    finally:
        for process in processes:
            process.close()


def _variant(process: Process, alone: Times) -> Iterator[Record]:
    planned, variant = process.planned, process.variant

    def case(arm: str, batch: int) -> Case:
        return Case(planned.subject, variant.name, variant.rules, arm, batch)

    about = process.about
    if process.failure or about is None or "cannot" in about:
        why = str(process.failure) if process.failure else (about or {}).get("cannot", "")
        status = Status.FAIL if process.failure else Status.SKIPPED
        yield record(planned, case("", 0), status, why, {"mode": variant.mode})
        return
    for batch, why in planned.too_long.items() if not variant.interpreted else ():
        yield from (skipped(planned, case(arm, batch), why) for arm in planned.arms)
    measured, failed = _measured(process)
    shared = about | _extra(process, bool(measured))
    for batch, found in measured.items():
        sites = [called(told) for told in about["sites"][str(batch)]]
        profile = found.get("profile", {})
        known = alone if batch in planned.alone and not variant.interpreted else None
        table = rows(sites, profile, known)
        for number, arm in enumerate(process.arms):
            one = Measured(variant, about=shared, found=found, table=table, first=not number)
            yield one.record(planned, case(arm, batch), layers(profile) if not number else [])
        for arm, why in process.refused.items():
            yield skipped(planned, case(arm, batch), why)
    for batch, reason in failed.items():
        yield from (record(planned, case(arm, batch), Status.FAIL, reason, {}) for arm in process.arms)


def _measured(process: Process) -> tuple[dict[int, dict[str, Any]], dict[int, str]]:
    """Batch → what was found there; and batch → why it failed. Profiled when all has been timed: a profiler that was
    on once makes a GPU process slower."""
    found: dict[int, dict[str, Any]] = {}
    failed: dict[int, str] = {}
    arms, timed = list(process.arms), not process.variant.interpreted
    for batch in process.batches:
        began = time.monotonic()
        try:
            found[batch] = process.ask("measure", arms=arms, batch=batch, timed=timed)
            found[batch]["seconds"] = (time.monotonic() - began) / len(arms)
        except Broken as failure:
            failed[batch] = str(failure)
    for batch, told in found.items() if timed else ():
        try:
            told |= process.ask("profile", arms=arms, batch=batch)
        except Broken as failure:
            told["unprofiled"] = str(failure)
    return found, failed


def _extra(process: Process, alive: bool) -> dict[str, Any]:
    """What is asked once: the accuracy, and what a call costs beyond the kernel."""
    planned, variant = process.planned, process.variant
    found: dict[str, Any] = {}
    if not alive or variant.interpreted:
        return found
    ran = {site["kernel"] for sites in (process.about or {})["sites"].values() for site in sites}
    meant = named(variant.rules, planned.subject.device)
    kernels = {kernel.name: text for text, (kernel, _) in meant if kernel.name in ran}
    if kernels:
        found |= _try(process, "boundary", kernels=kernels)
    wanted = planned.options.score
    if wanted or (wanted is None and _data_here(planned)):
        found |= _try(process, "score")
    return found


def _try(process: Process, do: str, **more: Any) -> dict[str, Any]:
    try:
        return process.ask(do, **more)
    except Broken as failure:
        return {do: {"why": str(failure).splitlines()[0]}}


def _data_here(planned: Plan) -> bool:
    from assay.models.subject.data.digits import DATASETS

    known = entry(planned.subject.model)
    asset = DATASETS.get(known.data) or (known.published if known.data else None)
    try:
        return asset is not None and asset.here()
    except (AssayError, OSError):
        return False
