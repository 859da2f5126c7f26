"""`assay tune`: which values of its tunables make a kernel fastest?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import bench as benching
from assay.cli import check as checking
from assay.cli import keeping, screen, selection
from assay.cli import options as common
from assay.units import duration

if TYPE_CHECKING:
    from assay.record import Record
    from assay.tune.evidence import Choice, TuneEvidence

Strategy = Annotated[
    str,
    typer.Option(
        "--strategy",
        help="exhaustive, random, guided or tpe; default: exhaustive for up to 40 configurations, else guided.",
    ),
]
Most = Annotated[
    int | None, typer.Option("--most", min=1, help="Measure at most so many configurations; default: a tenth.")
]
Workloads = Annotated[int, typer.Option("--workloads", min=0, help="Check each configuration on so many others first.")]
Rounds = Annotated[int, typer.Option("--rounds", min=5, help="Rounds of timing; the finalists get twice as many.")]
Budget = Annotated[float, typer.Option("--budget", min=0.1, help="Seconds of timing for each configuration.")]
Timeout = Annotated[float, typer.Option("--timeout", min=1, help="Seconds one round of one configuration may take.")]
Again = Annotated[bool, typer.Option("--again", help="Measure configurations that have a record already, too.")]
Target = Annotated[
    str, typer.Option("--target", help="Compile for this and rank by the code alone: sm_80, sm_90, sm_90a, …")
]
Fixed = Annotated[list[str] | None, typer.Option("--param", help="Fix a tunable: BLOCK=2048. May be repeated.")]
Export = Annotated[
    Path | None,
    typer.Option("--export", help="Write the winners to a file: .json, .py (triton.Config) or .h (constants)."),
]
_SHOWN = 12
"""Number of configurations that a table on a terminal shows; a pipe gets them all."""


def tune(
    what: common.What = None,
    op: common.OpName = None,
    dtype: common.FirstDType = "",
    workload: common.OneWorkload = "",
    axis: benching.Axes = None,
    backend: common.Backends = "",
    strategy: Strategy = "",
    most: Most = None,
    target: Target = "",
    workloads: Workloads = 6,
    rounds: Rounds = 5,
    budget: Budget = 1.0,
    threads: benching.Threads = 0,
    timeout: Timeout = 60.0,
    again: Again = False,
    seed: common.Seed = 0,
    device: common.Device = "",
    compiler: common.ChosenCompiler = "",
    include: common.Include = None,
    param: Fixed = None,
    export: Export = None,
    json: common.AsJson = False,
    out: common.Out = None,
    junit: common.JUnit = None,
    strict: common.Strict = False,
) -> None:
    """Which values of its tunables make a kernel fastest? Each configuration is compiled, checked and timed."""
    from assay.errors import UsageError
    from assay.tune.export import exported, writer
    from assay.tune.planning import Options, plan
    from assay.tune.verb import run

    if not what:
        raise UsageError("tune what?", fix="name a kernel or a file: assay tune gelu/triton")
    if export:
        writer(export)  # a name that cannot be written is refused before anything is measured
    options = Options(
        op=op,
        dtypes=common.split(dtype),
        workload=workload,
        axes=benching.axes_of(axis or []),
        strategy=strategy,
        most=most,
        target=target,
        workloads=workloads,
        rounds=rounds,
        budget=budget,
        seconds=timeout,
        threads=threads,
        again=again,
        seed=seed,
        parameters=common.parameters(param or []),
        backends=common.split(backend),
    )
    with screen.progress(None, "tune", json, "reading the kernels"):
        plans = plan(selection.chosen(what, options), options)
    done: list[Record] = []

    def save(kept: list[Record]) -> None:
        if out:
            screen.write_document(kept, out, verb="tune", run=options.run, interrupted=True)

    total = sum(len(p.space.configurations) if not p.measured else p.most for p in plans)
    with screen.progress(total, "tune", json, "starting") as tick:
        records, interrupted = screen.drain(
            run(plans, options, lambda text: tick(text, min(total, len(done)))), done, None, save
        )
    about: dict[str, Any] = {"verb": "tune", "run": options.run, "interrupted": interrupted}
    if json:
        screen.write_document(records, **about)
    else:
        show(records, screen.console())
        checking.report(records, interrupted)
    checking.keep(records, out, junit, json, strict, **about)
    if export and keeping.written("the tuned values", export, lambda: keeping.put(export, exported(records, export))):
        print(f"tuned values: {export}", file=sys.stderr)
    sys.exit(screen.exit_code(records, strict, interrupted))


def show(records: list[Record], terminal: Any) -> None:
    """Print one table per kernel and workload: the best configurations first, and the choice below it."""
    from assay.tune.evidence import TuneEvidence

    cells: dict[tuple[str, str], list[tuple[Record, TuneEvidence]]] = {}
    for record in records:
        cells.setdefault((record.kernel, record.workload), []).append((record, TuneEvidence.of(record)))
    for (kernel, workload), cell in cells.items():
        shown = [(r, e) for r, e in cell if e.parameters and str(r.status) in ("pass", "compiled")]
        shown.sort(key=lambda one: (one[0].median or 0.0, one[1].place or 0))
        if shown:
            _table(f"{kernel}  {workload}", shown, terminal)
        pruned = [e for _, e in cell if e.pruned]
        if pruned:
            terminal.print(f"{len(pruned)} not measured, e.g. {pruned[0].pruned}", style="dim")
        for record, evidence in cell:
            if evidence.choice:
                terminal.print(f"[bold]{record.reason}[/]")
                _ranking(evidence.choice, terminal)
                if spent := evidence.choice.spent:
                    took = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in spent.items() if seconds >= 0.05)
                    terminal.print(f"where the time went: {took}; {record.seconds:.0f} s in all", style="dim")


def _table(title: str, shown: list[tuple[Record, TuneEvidence]], terminal: Any) -> None:
    from rich.table import Table

    from assay.tune.space import label

    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("configuration", no_wrap=True)
    compiled = any(e.static for _, e in shown)
    timed = any(r.median for r, _ in shown)
    columns = [*(["cold", "±"] if timed else []), *(_STATIC if compiled else [])]
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    count = _SHOWN if screen.on_terminal() else len(shown)
    for record, evidence in shown[:count]:
        spread = f"{evidence.spread:.1%}" if evidence.spread is not None else ""
        cells = [*([duration(record.median or 0.0), spread] if timed else []), *(_code(evidence) if compiled else [])]
        table.add_row(label(evidence.parameters or {}), *cells)
    terminal.print(table)
    if len(shown) > count:
        terminal.print(f"and {len(shown) - count} slower ones", style="dim")


_STATIC = ["registers", "shared", "spills", "occupancy", "estimate"]


def _code(evidence: TuneEvidence) -> list[str]:
    static = evidence.static
    if static is None:
        return [""] * len(_STATIC)
    return [
        f"{static.registers}",
        f"{static.shared}",
        f"{static.spills}",
        f"{static.occupancy:.0%}" if static.occupancy is not None else "",
        duration(static.estimate) if static.estimate else "",
    ]


def _ranking(choice: Choice, terminal: Any) -> None:
    """Print the finalists, timed again in the same rounds, and the rule's verdict on each."""
    from assay.tune.space import label

    for one in (choice.ranking or [])[1:]:
        terminal.print(f"  {one.verdict:<9}  {duration(one.median)}  {label(one.parameters)}: {one.why}", style="dim")
