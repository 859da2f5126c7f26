"""`assay model attention`: the naive form against the fused ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import options as common
from assay.cli.model import options as shared
from assay.cli.model.study import Ending, finish

if TYPE_CHECKING:
    from rich.table import Table

    from assay.record import Record

Lengths = Annotated[str, typer.Option("--seq", help="Lengths: 128,512,1024 or 128..4096:x2. Default: by device.")]
Heads = Annotated[int, typer.Option("--heads", min=1)]
Dim = Annotated[int, typer.Option("--dim", min=1, help="Of each head.")]
Batch = Annotated[int, typer.Option("--batch", min=1)]
Causal = Annotated[str, typer.Option("--causal", help="yes, no or both.")]
DTypes = Annotated[str, typer.Option("--dtype", help="fp32,bf16,fp16; default: fp32 on a CPU, bf16 on a GPU.")]
Arms = Annotated[str, typer.Option("--arm", help="naive,compiled,math,flash,efficient,cudnn; default: all.")]
Rounds = Annotated[int, typer.Option("--rounds", min=6, help="Each takes every arm, beginning with another one.")]
Budget = Annotated[float, typer.Option("--budget", min=0.1, help="Seconds for each arm and length at most.")]
Seed = Annotated[int, typer.Option("--seed", help="Of the inputs.")]
Timeout = Annotated[float, typer.Option("--timeout", min=1, help="Seconds for one length, all arms together.")]
Html = Annotated[Path | None, typer.Option("--html", help="Time and memory over length, as a page of its own.")]

_CAUSAL = {"yes": (True,), "no": (False,), "both": (False, True)}


def attention(
    seq: Lengths = "",
    heads: Heads = 8,
    dim: Dim = 64,
    batch: Batch = 1,
    causal: Causal = "both",
    dtype: DTypes = "",
    device: common.Device = "",
    arm: Arms = "",
    rounds: Rounds = 10,
    budget: Budget = 4.0,
    threads: shared.Threads = 0,
    timeout: Timeout = 600.0,
    seed: Seed = 0,
    json: common.AsJson = False,
    out: common.Out = None,
    html: Html = None,
    png: shared.Png = None,
    strict: common.Strict = False,
) -> None:
    """Attention, naive against compiled and fused: time, peak memory and error over sequence lengths."""
    from assay.bench.sweep import axis_values
    from assay.errors import UsageError
    from assay.models.attention import Options, plan, run
    from assay.models.attention.arms import ARMS

    ending = Ending(json, out, (html, png), strict)
    ending.check()
    if causal not in _CAUSAL:
        raise UsageError(f"--causal {causal}: neither yes, no nor both", fix="--causal both")
    options = Options(
        lengths=tuple(axis_values(seq)) if seq else (),
        batch=batch,
        heads=heads,
        dim=dim,
        causal=_CAUSAL[causal],
        dtypes=common.split(dtype),
        device=device,
        arms=common.split(arm) or tuple(ARMS),
        rounds=rounds,
        budget=budget,
        threads=threads,
        timeout=timeout,
        seed=seed,
    )
    cells = plan(options)
    finish(
        "attention",
        lambda tick: run(cells, options, tick),
        len(cells) * len(options.arms),
        ending,
        run=options.run,
        show=show,
    )


def show(records: list[Record], terminal: Any) -> None:
    """A table for each format and mask, a group of rows for each length; what was left out is said once."""
    from assay.units import count

    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        sizes = record.point
        groups.setdefault((sizes["dtype"], sizes["causal"]), []).append(record)
    for (number, causal), group in groups.items():
        timed = [r for r in group if r.median]
        if timed:
            sizes, told = timed[0].point, timed[0].evidence
            where = count(told["threads"], "thread") if told.get("threads") else timed[0].provenance.get("gpu") or ""
            title = f"attention  {sizes['batch']} × {sizes['heads']} heads of {sizes['dim']}, {number}"
            title += (", causal" if causal == "1" else "") + f"  ({where})"
            terminal.print(_table(title, timed))
        left_out: dict[tuple[str, str], list[str]] = {}
        for record in group:
            if str(record.status) == "skipped":
                left_out.setdefault((record.evidence["arm"], record.reason), []).append(record.point["seq"])
        for (arm, reason), lengths in left_out.items():
            terminal.print(f"– {arm} at {', '.join(lengths)}: {reason}", style="dim", markup=False)


def _table(title: str, timed: list[Record]) -> Table:
    from rich.table import Table

    from assay.cli.bench import duration
    from assay.units import si

    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in ("seq", "arm"):
        table.add_column(column, justify="right" if column == "seq" else "left", no_wrap=True)
    for column in ("time", "±", "speedup", "memory", "rate", "error", "of limit"):
        table.add_column(column, justify="right", no_wrap=True)
    before = ""
    for record in timed:
        e, seq = record.evidence, record.point["seq"]
        if before and seq != before:
            table.add_section()
        assert record.median and record.interval
        table.add_row(
            seq if seq != before else "",
            ("[red]✗[/] " if str(record.status) == "fail" else "") + e["arm"],
            duration(record.median),
            f"{(record.interval[1] - record.interval[0]) / 2 / record.median:.1%}",
            f"{e['speedup']['median']:.2f}×" if "speedup" in e else "",
            si(e["peak_bytes"], "B", 3) if e.get("peak_bytes") is not None else "",
            si(e["tflops"] * 1e12, "FLOP/s", 3),
            f"{e['errors']['rms']:.3g}",
            f"{e['errors']['share']:.0%}",
        )
        before = seq
    return table
