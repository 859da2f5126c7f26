"""`assay bench`: how fast, against the limit?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import check as checking
from assay.cli import options as common
from assay.cli import screen, selection

if TYPE_CHECKING:
    from assay.bench.planning import BenchPlan
    from assay.record import Record

Axes = Annotated[
    list[str] | None,
    typer.Option("--axis", help="rows=1024..65536:x2, cols=768,1024 or n=0..100:+10. May be repeated."),
]
Sweep = Annotated[Path | None, typer.Option("--sweep", help="A TOML file that says all of this; see docs/bench.md.")]
Against = Annotated[str, typer.Option("--against", help="torch,inductor or addresses; the first is the baseline.")]
Rounds = Annotated[int, typer.Option("--rounds", min=5, help="At least so many, with fresh buffers each.")]
Budget = Annotated[float, typer.Option("--budget", min=0.1, help="Seconds for each kernel and workload at most.")]
Quick = Annotated[bool, typer.Option("--quick", help="Five rounds and no second clock: faster, wider intervals.")]
Threads = Annotated[int, typer.Option("--threads", min=0, help="Of CPU kernels; 0: all cores.")]
Timeout = Annotated[float, typer.Option("--timeout", min=1, help="Seconds one round of one kernel may take.")]
Tuned = Annotated[
    bool, typer.Option("--tuned", help="With the values that `assay tune` chose for such a shape, where it did.")
]


_WIDE = 108
"""Columns of a terminal from which on it shows every figure; a pipe always does."""
_MANY = 64
"""Workloads above which the command says how many they are before it begins."""


def bench(
    context: typer.Context,
    what: common.What = None,
    everything: common.All = False,
    op: common.OpName = None,
    dtype: common.FirstDType = "",
    workload: common.OneWorkload = "",
    axis: Axes = None,
    sweep: Sweep = None,
    backend: common.Backends = "",
    against: Against = "torch",
    rounds: Rounds = 10,
    budget: Budget = 8.0,
    quick: Quick = False,
    threads: Threads = 0,
    timeout: Timeout = 120.0,
    limit: common.Limit = None,
    seed: common.Seed = 0,
    device: common.Device = "",
    compiler: common.ChosenCompiler = "",
    include: common.Include = None,
    param: common.Param = None,
    tuned: Tuned = False,
    json: common.AsJson = False,
    out: common.Out = None,
    junit: common.JUnit = None,
    strict: common.Strict = False,
) -> None:
    """How fast is it? Cold, hot and per call, over rounds, against a baseline, a copy and the device's own limit."""
    from assay.bench.planning import Options, plan
    from assay.bench.sweep_file import SweepFile, from_file
    from assay.errors import UsageError

    file = from_file(sweep) if sweep else SweepFile()

    def given(name: str) -> bool:
        source = context.get_parameter_source(name)
        return source is not None and source.name == "COMMANDLINE"

    kernels = list(what or file.kernels)
    if not kernels and not everything:
        raise UsageError("bench what?", fix="name an op, a kernel or a file (assay bench gelu), or say --all")
    named = common.split(against)
    options = Options(
        op=op,
        dtypes=common.split(dtype) or file.dtype,
        workload=workload,
        axes={**file.axes, **axes_of(axis or [])},
        against=(named if given("against") else file.against or named) or ("torch",),
        rounds=rounds if given("rounds") else file.rounds or rounds,
        budget=budget if given("budget") else file.budget or budget,
        seconds=timeout,
        limit=limit,
        threads=threads,
        seed=seed,
        parameters=common.parameters(param or []),
        tuned=tuned,
        backends=common.split(backend),
    )
    if quick:
        options = options.quicker()
    with screen.progress(None, "bench", json, "reading the kernels"):
        plans = plan(selection.chosen(kernels, options, whole_library=everything), options)
    records, interrupted = perform(plans, options, json, out)
    about: dict[str, Any] = {"verb": "bench", "run": options.run, "interrupted": interrupted}
    if json:
        screen.write_document(records, **about)
    else:
        checking.report(records, interrupted, strict=strict)
    checking.keep(records, out, junit, json, strict, **about)
    sys.exit(screen.exit_code(records, strict, interrupted))


def large(plans: list[BenchPlan], budget: float) -> str:
    """Return how much there is to time in a large sweep, and how to make it smaller."""
    total = sum(len(p.kernels) for p in plans)
    return (
        f"{len(plans)} workloads, which is {total} measurements of up to about {budget:g} s each\n"
        "  → larger steps (--axis n=1024..65536:x2) make fewer, --quick or --budget shorter ones"
    )


def axes_of(texts: list[str]) -> dict[str, list[int]]:
    """Return the sizes of each axis, as `--axis` gives them."""
    from assay.bench.sweep import axis_values
    from assay.errors import UsageError

    axes = {}
    for text in texts:
        name, equals, sizes = text.partition("=")
        if not equals:
            raise UsageError(f"--axis {text}: not name=sizes", fix="e.g. --axis rows=1024..65536:x2")
        axes[name.strip()] = axis_values(sizes)
    return axes


def perform(plans: list[BenchPlan], options: Any, json: bool, out: Path | None = None) -> tuple[list[Record], bool]:
    """Run the plans under a progress bar, then print the tables. Return the records, and whether it was interrupted."""
    from assay.bench.spent import Spent
    from assay.bench.verb import run

    if len(plans) > _MANY:
        print(f"assay: {large(plans, options.budget)}", file=sys.stderr)
    done: list[Record] = []
    spent = Spent()

    def save(kept: list[Record]) -> None:
        if out:
            screen.write_document(kept, out, verb="bench", run=options.run, interrupted=True)

    total = sum(len(p.kernels) for p in plans)
    with screen.progress(total, "bench", json, "starting a process for each kernel") as tick:
        running = run(plans, options, lambda text: tick(text, len(done)), spent)
        records, interrupted = screen.drain(running, done, None, save)
    if not json:
        show(records, screen.console())
        if any(r.median for r in records):
            note = "; --quick: five rounds, no second clock" if not options.second_clock else ""
            screen.console().print(f"where the time went: {spent}{note}", style="dim")
    return records, interrupted


def show(records: list[Record], terminal: Any) -> None:
    """Print one table per workload: the fastest first, what was not timed below it."""
    from assay.report.bench import parts

    screen.print_parts(parts(records, terminal.width >= _WIDE or not screen.on_terminal()), terminal)
