"""`assay run`: everything in one go: check, then time what passed, then draw the page."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import bench as timing
from assay.cli import check as checking
from assay.cli import keeping, screen, selection
from assay.cli import options as common

if TYPE_CHECKING:
    from assay.bench.planning import BenchPlan
    from assay.record import Record

Page = Annotated[Path | None, typer.Option("--report", help="Write the page of these records here.")]
NoBench = Annotated[bool, typer.Option("--no-bench", help="Only check.")]


def run(
    what: common.What = None,
    everything: common.All = False,
    op: common.OpName = None,
    dtype: common.DTypes = "",
    workload: common.OneWorkload = "",
    workloads: common.Count = None,
    thorough: common.Thorough = False,
    axis: timing.Axes = None,
    backend: common.Backends = "",
    against: timing.Against = "torch",
    rounds: timing.Rounds = 10,
    budget: timing.Budget = 8.0,
    quick: timing.Quick = False,
    tuned: timing.Tuned = False,
    no_bench: NoBench = False,
    limit: common.Limit = None,
    target: common.TargetName = "",
    timeout: common.Timeout = 60.0,
    jobs: common.Jobs = None,
    threads: timing.Threads = 0,
    seed: common.Seed = 0,
    device: common.Device = "",
    compiler: common.ChosenCompiler = "",
    include: common.Include = None,
    param: common.Param = None,
    page: Page = None,
    json: common.AsJson = False,
    out: common.Out = None,
    junit: common.JUnit = None,
    strict: common.Strict = False,
) -> None:
    """Take kernels from source to verdict: everything this machine can do with them, in one go."""
    from assay import host
    from assay.bench.planning import Options as BenchOptions
    from assay.bench.planning import plan as bench_plan
    from assay.check.verb import Options, plan
    from assay.errors import UsageError
    from assay.target import target as named

    if not what and not everything:
        raise UsageError("run what?", fix="name an op, a kernel or a file (assay run my_kernel.py), or say --all")
    began = time.monotonic()
    options = Options(
        op=op,
        dtypes=common.split(dtype),
        workload=workload,
        workloads=workloads,
        thorough=thorough,
        limit=limit,
        target=named(target) if target else host.target(),
        seconds=timeout,
        jobs=jobs,
        seed=seed,
        parameters=common.parameters(param or []),
        backends=common.split(backend),
    )
    timed = BenchOptions(
        op=op,
        dtypes=options.dtypes,
        workload=workload,
        axes=timing.axes_of(axis or []),
        against=common.split(against) or ("torch",),
        rounds=rounds,
        budget=budget,
        threads=threads,
        seed=seed,
        parameters=options.parameters,
        tuned=tuned,
        run=options.run,
    )
    timed = timed.quicker() if quick else timed
    with screen.progress(None, "run", json, "reading the kernels"):
        choices = selection.chosen(what or [], options, whole_library=everything)
        to_check = plan(choices, options)
        to_time = [] if no_bench else bench_plan(choices, timed)
    records, interrupted = checking.perform(to_check, options, json)
    if not interrupted and (right := _passed(to_time, records)):
        left = None if limit is None else max(_LEAST, limit - (time.monotonic() - began))
        times, interrupted = timing.perform(right, replace(timed, limit=left), json)
        records += times
    about: dict[str, Any] = {"verb": "run", "run": options.run, "interrupted": interrupted}
    if json:
        screen.write_document(records, **about)
    else:
        checking.report(records, interrupted, strict=strict)
    checking.keep(records, out, junit, json, strict, **about)
    if page and _drawn(records, page) and not json:
        screen.console().print(f"page: {page}")
    sys.exit(screen.exit_code(records, strict, interrupted))


_LEAST = 1e-3
"""Seconds, if no time is left: what was to be timed is recorded as skipped."""


def _drawn(records: list[Record], page: Path) -> bool:
    from assay.report import report

    return keeping.written("the page", page, lambda: report(records, page))


def _passed(plans: list[BenchPlan], checked: list[Record]) -> list[BenchPlan]:
    """Return the plans with the kernels that passed, beside their baselines: the time of a wrong kernel means nothing.
    A baseline that was not named has no verdict; bench checks its results while it is timed."""
    from assay.provenance import shown
    from assay.record import Status

    verdicts = {(r.kernel, r.source.get("file", ""), r.dtype): r.status for r in checked}
    passed = []
    for planned in plans:
        number = planned.workload.dtype.name
        status = {k.identity: verdicts.get((k.name, shown(k.home), number)) for k in planned.kernels}
        kernels = [k for k in planned.kernels if status[k.identity] in (Status.PASS, None)]
        if Status.PASS in status.values():
            passed.append(replace(planned, kernels=kernels))
    return passed
