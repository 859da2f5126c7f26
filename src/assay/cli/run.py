"""`assay run`: everything in one go: check, then time what passed, then draw the page."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import bench as timing
from assay.cli import check as checking
from assay.cli import keeping, screen
from assay.cli import options as common

if TYPE_CHECKING:
    from assay.record import Record

Page = Annotated[Path | None, typer.Option("--report", help="Write the page of these records here.")]
NoBench = Annotated[bool, typer.Option("--no-bench", help="Only check.")]


def run(
    what: common.What = None,
    op: common.OpName = None,
    dtype: common.DTypes = "",
    target: common.TargetName = "",
    timeout: common.Timeout = 60.0,
    jobs: common.Jobs = None,
    device: common.Device = "",
    compiler: common.ChosenCompiler = "",
    include: common.Include = None,
    workloads: common.Count = None,
    against: timing.Against = "torch",
    rounds: timing.Rounds = 10,
    budget: timing.Budget = 8.0,
    no_bench: NoBench = False,
    page: Page = None,
    json: common.AsJson = False,
    out: common.Out = None,
    junit: common.JUnit = None,
    strict: common.Strict = False,
) -> None:
    """Take kernels from source to verdict: everything this machine can do with them, in one go."""
    from assay import host
    from assay.check.verb import Options
    from assay.target import target as named

    options = Options(
        op=op,
        dtypes=common.split(dtype),
        workloads=workloads,
        target=named(target) if target else host.target(),
        seconds=timeout,
        jobs=jobs,
    )
    records, interrupted = checking.perform(what or [], options, "check", json)
    if not interrupted and not no_bench:
        timed, interrupted = _timed(records, what or [], options, common.split(against), rounds, budget, json)
        records += timed
    about: dict[str, Any] = {"verb": "run", "run": options.run, "interrupted": interrupted}
    if json:
        screen.write_document(records, **about)
    else:
        checking.report(records, interrupted)
    checking.keep(records, out, junit, json, **about)
    if page and _drawn(records, page) and not json:
        screen.console().print(f"page: {page}")
    sys.exit(screen.exit_code(records, strict, interrupted))


def _drawn(records: list[Record], page: Path) -> bool:
    from assay.report import report

    return keeping.written("the page", page, lambda: report(records, page))


def _timed(
    checked: list[Record],
    what: list[str],
    options: Any,
    against: tuple[str, ...],
    rounds: int,
    budget: float,
    json: bool,
) -> tuple[list[Record], bool]:
    """Time what passed, beside its baselines: the time of a wrong kernel means nothing. A baseline that was not named
    has no verdict; bench checks its results while it is timed."""
    from assay.bench.planning import Options, plan
    from assay.catalog.select import everything, gather
    from assay.provenance import shown
    from assay.record import Status

    verdicts = {(r.kernel, r.source.get("file", ""), r.dtype): r.status for r in checked}
    chosen = Options(
        op=options.op,
        dtypes=options.dtypes,
        against=against or ("torch",),
        rounds=rounds,
        budget=budget,
        run=options.run,
    )
    plans = []
    named = gather(what, options.op).choices if what else everything()
    for planned in plan(named, chosen):
        number = planned.workload.dtype.name
        status = {k.identity: verdicts.get((k.name, shown(k.home), number)) for k in planned.kernels}
        kernels = [k for k in planned.kernels if status[k.identity] in (Status.PASS, None)]
        if Status.PASS in status.values():
            plans.append(replace(planned, kernels=kernels))
    return timing.perform(plans, chosen, json) if plans else ([], False)
