"""`assay model compile`: what torch.compile costs and what it buys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import options as common
from assay.cli.bench import duration
from assay.cli.model import options as shared
from assay.cli.model.study import Ending, finish

if TYPE_CHECKING:
    from rich.table import Table

    from assay.record import Record

Model = Annotated[str, typer.Argument(help="mnist-cnn, resnet18, minilm, … or module:function of your own.")]
Batches = Annotated[str, typer.Option("--batch", help="Sizes: 1,16,64. With several, one process meets them all too.")]
States = Annotated[str, typer.Option("--state", help="cold,disk,warm,sweep; default: all.")]
Modes = Annotated[str, typer.Option("--mode", help="default,reduce-overhead,max-autotune.")]
Dynamic = Annotated[
    bool | None, typer.Option("--dynamic/--static", help="Shapes. Default: a size that changed once is dynamic.")
]
Calls = Annotated[int, typer.Option("--calls", min=1, help="How many are counted one after the other.")]
Rounds = Annotated[int, typer.Option("--rounds", min=6, help="Each takes eager and compiled, the first in turn.")]
Budget = Annotated[float, typer.Option("--budget", min=0.1, help="Seconds of calls for each of eager and compiled.")]
Limit = Annotated[
    int, typer.Option("--recompile-limit", min=0, help="Compilations of one function; 0: torch's own limit.")
]
Seed = Annotated[int, typer.Option("--seed", help="Of weights and inputs.")]
Timeout = Annotated[float, typer.Option("--timeout", min=1, help="Seconds for one process.")]
Html = Annotated[Path | None, typer.Option("--html", help="Time over calls, as a page of its own.")]


_MORE, _WIDE = ("breaks", "error"), 90
"""Columns that only a wide terminal has room for. The error is compiled's worst over eager's, both against float64."""


def compile_(
    model: Model,
    batch: Batches = "64",
    dtype: shared.DType = "fp32",
    device: common.Device = "",
    state: States = "",
    mode: Modes = "default",
    dynamic: Dynamic = None,
    backend: shared.Backend = "inductor",
    calls: Calls = 1000,
    rounds: Rounds = 10,
    budget: Budget = 4.0,
    threads: shared.Threads = 0,
    recompile_limit: Limit = 0,
    timeout: Timeout = 600.0,
    seed: Seed = 0,
    json: common.AsJson = False,
    out: common.Out = None,
    html: Html = None,
    png: shared.Png = None,
    strict: common.Strict = False,
) -> None:
    """torch.compile from a cold process, a warm disk cache and a warm process: seconds, graphs, kernels, break-even."""
    from assay.bench.sweep import axis_values
    from assay.models.studies.compile.case import STATES, Effort
    from assay.models.studies.compile.verb import Options, plan, run

    ending = Ending(json, out, (html, png), strict)
    ending.check()
    options = Options(
        batches=tuple(axis_values(batch)),
        dtype=dtype,
        device=device,
        states=common.split(state) or tuple(STATES),
        modes=common.split(mode),
        dynamic=dynamic,
        backend=backend,
        timeout=timeout,
        effort=Effort(rounds, budget, calls, threads, seed, recompile_limit),
    )
    plans = plan(model, options)
    finish(
        "compile",
        lambda tick: run(plans, options, tick),
        sum(len(p.cases) for p in plans),
        ending,
        run=options.run,
        show=show,
    )


def show(records: list[Record], terminal: Any) -> None:
    """For each model, batch and mode: the states, what so many calls take from each, and where graphs broke."""
    from rich.markup import escape

    from assay.units import count

    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(_without_state(record), []).append(record)
    for title, group in groups.items():
        studied = [r for r in group if "break_even" in r.evidence]
        if studied:
            told = studied[0].evidence
            where = count(told["threads"], "thread") if told.get("threads") else studied[0].provenance.get("gpu") or ""
            terminal.print(_states(f"{title}  ({where})", studied, terminal.width >= _WIDE))
            terminal.print(_calls(studied))
        for swept in (r for r in group if "steps" in r.evidence):
            terminal.print(_sweep(f"{title}  (one process)", swept))
        for text in dict.fromkeys(_break(b) for r in studied for b in r.evidence.get("graph_breaks", [])):
            terminal.print(f"graph break: {escape(text)}", soft_wrap=True)
        for record in (r for r in group if str(r.status) == "skipped"):
            terminal.print(f"– {record.evidence['state']}: {record.reason}", style="dim", markup=False)


def _states(title: str, records: list[Record], wide: bool) -> Table:
    table = _new(title, "state")
    for column in ("compile", "eager", "compiled", "±", "speedup", "pays after", "graphs", "kernels", *_MORE * wide):
        table.add_column(column, justify="right", no_wrap=True)
    for record in records:
        e = record.evidence
        assert record.median and record.interval
        kernels = e["kernels"]
        table.add_row(
            ("[red]✗[/] " if str(record.status) == "fail" else "") + e["state"],
            duration(e["compile_seconds"]),
            duration(e["steady"]["eager"]["median"]),
            duration(record.median),
            f"{(record.interval[1] - record.interval[0]) / 2 / record.median:.1%}",
            f"{e['speedup']['median']:.2f}×",
            _pays(e["break_even"]),
            str(e["counts"]["graphs"]),
            f"{kernels['eager']['kernels']:g} → {kernels['compiled']['kernels']:g}",
            *([str(e["counts"]["breaks"]), _times(e["outputs"]["ratio"])] if wide else []),
        )
    return table


def _pays(worth: dict[str, Any]) -> str:
    return f"{worth['calls']:,} calls" if worth["calls"] else str(worth["verdict"])


def _calls(records: list[Record]) -> Table:
    """Measured where it was, else what compiling cost and so many steady calls (~)."""
    table = _new("", "calls")
    table.add_column("eager", justify="right", no_wrap=True)
    for record in records:
        table.add_column(record.evidence["state"], justify="right", no_wrap=True)
    crossings = [r.evidence["break_even"]["calls"] or 1 for r in records]
    count = 1
    while count <= max(1000, 10 * max(crossings)):
        cells = [_after(records[0].evidence, "eager", 0.0, count)]
        cells += [_after(r.evidence, "compiled", _fixed(r.evidence), count) for r in records]
        table.add_row(f"{count:,}", *cells)
        count *= 10
    return table


def _fixed(told: dict[str, Any]) -> float:
    return float(told["compile_seconds"]) if told["state"] != "warm" else 0.0  # there it is noise


def _after(told: dict[str, Any], arm: str, fixed: float, count: int) -> str:
    measured = dict(map(tuple, told["curve"][arm]))
    if count in measured:
        return duration(measured[count])
    return "~" + duration(fixed + count * told["steady"][arm]["median"])


def _sweep(title: str, record: Record) -> Table:
    table = _new(title, "batch")
    for column in ("first call", "then", "compilations", "error"):
        table.add_column(column, justify="right", no_wrap=True)
    for step in record.evidence["steps"]:
        first, *rest = step["first_seconds"]
        table.add_row(
            str(step["batch"]),
            duration(first),
            duration(sorted(rest)[len(rest) // 2]),
            str(step["compilations"]),
            _times(step["outputs"]["ratio"]),
        )
    return table


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}×"


def _new(title: str, first: str) -> Table:
    from rich.table import Table

    table = Table(
        title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False, collapse_padding=True
    )
    table.add_column(first, no_wrap=True)
    return table


def _break(told: dict[str, Any]) -> str:
    place = f"{told['where']} in {told['function']}" if told["where"] else "somewhere"
    return f"{place}: {told['code'] or '?'}: {told['reason']}"


def _without_state(record: Record) -> str:
    told = record.evidence
    batches = "batches" if told["state"] == "sweep" else "batch"
    parts = [f"{batches} {', '.join(map(str, told['batches']))}", told["dtype"]]
    parts += [told["mode"]] * (told["mode"] != "default")
    parts += [{True: "dynamic", False: "static"}[told["dynamic"]]] if told["dynamic"] is not None else []
    parts += [told["backend"]] * (told["backend"] != "inductor")
    return f"{record.kernel}  {', '.join(parts)}"
