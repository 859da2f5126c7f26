"""`assay bench`: how fast, against the limit?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import check as checking
from assay.cli import options as common
from assay.cli import screen, selection
from assay.units import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.bench.evidence import BenchEvidence
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


_MORE, _WIDE = ("TFLOP/s", "memory", "compile", "kernels"), 108
"""Columns that only a wide terminal shows, and its width; a pipe gets them all. Memory is measured on a GPU only."""


def bench(
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
    from assay.bench.sweep import from_file
    from assay.errors import UsageError

    settings: dict[str, Any] = from_file(sweep) if sweep else {}
    kernels = list(what or settings.get("kernels", []))
    if not kernels and not everything:
        raise UsageError("bench what?", fix="name an op, a kernel or a file (assay bench gelu), or say --all")
    axes = dict(settings.get("axes", {})) | axes_of(axis or [])
    options = Options(
        op=op,
        dtypes=common.split(dtype) or tuple(common.split(settings.get("dtype", ""))),
        workload=workload,
        axes=axes,
        against=common.split(settings.get("against", "") if sweep and against == "torch" else against) or ("torch",),
        rounds=settings.get("rounds", rounds),
        budget=settings.get("budget", budget),
        seconds=timeout,
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
        checking.report(records, interrupted)
    checking.keep(records, out, junit, json, **about)
    sys.exit(screen.exit_code(records, strict, interrupted))


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
    """Print one table per workload: the fastest first, what was not timed below it. `copy` and `limit` are shares: of a
    copy of the same bytes in the same run, and of what the machine's model allows (* if only by published figures)."""
    from rich.table import Table

    from assay.bench.evidence import BenchEvidence
    from assay.record import namesakes
    from assay.units import si

    apart = namesakes(records)
    by_workload: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        by_workload.setdefault((record.op, record.workload), []).append(record)
    for (op, workload), group in by_workload.items():
        timed = sorted((r for r in group if r.median), key=lambda r: r.median or 0.0)
        if timed:
            threads = BenchEvidence.of(timed[0]).threads
            where = f"{threads} threads" if threads else timed[0].provenance.get("gpu") or ""
            title = f"{op}  {workload}  ({where})"
            table = Table(
                title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, collapse_padding=True
            )
            table.add_column("kernel", no_wrap=True)
            weighed = any(BenchEvidence.of(r).peak_bytes is not None for r in timed)
            roomy = terminal.width >= _WIDE or not screen.on_terminal()
            more = [c for c in _MORE if roomy and (weighed or c != "memory")]
            for column in ("cold", "±", "hot", "call", "GB/s", *more, "copy", "limit", "speedup"):
                table.add_column(column, justify="right", no_wrap=True)
            for r in timed:
                table.add_row(*row(r, more, r.named(apart)))
            terminal.print(table)
        for r in (r for r in group if str(r.status) == "skipped"):
            terminal.print(f"[yellow]– {r.named(apart)}[/]  {r.reason}", style="dim")
    for r in records:
        if source := BenchEvidence.of(r).tuned:
            values = ", ".join(f"{n}={v}" for n, v in (BenchEvidence.of(r).parameters or {}).items())
            terminal.print(f"{r.named(apart)}: {f'{values}, from ' if values else ''}{source}", style="dim")
        if kept := BenchEvidence.of(r).prepared_bytes:
            moved = si(BenchEvidence.of(r).bytes, "B", 3)
            what = f"{BenchEvidence.of(r).peer}: it keeps {si(kept, 'B', 3)}, the op moves {moved}"
            terminal.print(f"{r.named(apart)}: {what}", style="dim")
    for line in _legend([BenchEvidence.of(r) for r in records if r.median]):
        terminal.print(line, style="dim")


def _legend(timed: list[BenchEvidence]) -> Iterator[str]:
    """Yield the lines that explain the columns."""
    if not timed:
        return
    yield (
        "cold: one call, its inputs in no cache (± half of its 95 % interval); hot: its inputs in a cache; "
        "call: from Python and back, launch included"
    )
    baselines = dict.fromkeys(e.baseline for e in timed if e.baseline)
    speedup = f"; speedup: over {', '.join(baselines)}" if baselines else ""
    yield f"copy, limit: its speed in % of a copy of as many bytes, and of what the device allows{speedup}"
    if any(e.less_accurate for e in timed):
        yield "≈: another project's kernel, less accurate than ours may be; the record says by how much"
    if not any(e.roofline for e in timed):
        yield "the limit of this device is not known yet: `assay machine` measures it"
    elif not all(e.roofline.measured for e in timed if e.roofline):
        yield "*: by published figures; `assay machine` measures this device"


def row(record: Record, more: list[str], name: str) -> list[str]:
    from assay.bench.evidence import BenchEvidence
    from assay.units import si

    e = BenchEvidence.of(record)
    assert record.median is not None and record.interval is not None
    spread = (record.interval[1] - record.interval[0]) / 2 / record.median
    extra = {
        "TFLOP/s": f"{e.tflops:.3g}" if e.tflops is not None else "",
        "memory": si(e.peak_bytes, "B", 3),
        "compile": f"{e.compile_seconds:.2f} s" if e.compile_seconds is not None else "",
        "kernels": f"{e.launches or ''}",
    }
    return [
        f"[red]✗[/] {name}" if str(record.status) == "fail" else f"{name} ≈" if e.less_accurate else name,
        duration(record.median),
        f"{spread:.1%}",
        duration(e.hot.median) if e.hot else "",
        duration(e.call.median) if e.call else "",
        f"{e.gbps:.1f}",
        *(extra[column] for column in more),
        f"{e.share_of_copy:.0%}" if e.share_of_copy is not None else "",
        (f"{e.roofline.share:.0%}" + ("" if e.roofline.measured else "*")) if e.roofline else "",
        f"{e.speedup.median:.2f}×" if e.speedup else "",
    ]
