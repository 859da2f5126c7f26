"""`assay history`: what was recorded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import screen
from assay.cli.options import AsJson
from assay.units import duration

if TYPE_CHECKING:
    from assay.record import Record
    from assay.store import Run

WhichRun = Annotated[str | None, typer.Argument(metavar="RUN", help="A run: its id, the beginning of it, or `last`.")]
Verb = Annotated[str | None, typer.Option("--verb", help="Only records of this verb.")]
KernelName = Annotated[str | None, typer.Option("--kernel", help="Only these: gelu, gelu/triton, 'gelu/*'.")]
StatusName = Annotated[str | None, typer.Option("--status", help="pass, fail, compiled, skipped, inconclusive.")]
Since = Annotated[str | None, typer.Option("--since", help="2026-11-15, 2026-11-15T05:00 (UTC), or ago: 90min, 7d.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="At most so many, the newest.")]
Out = Annotated[Path | None, typer.Option("--out", help="Write the records to FILE.csv, .json or .parquet.")]
Import = Annotated[
    list[Path] | None, typer.Option("--import", help="Take in the records of a document. May be repeated.")
]
Place = Annotated[
    str | None, typer.Option("--store", help="A file or postgresql://…; default: $ASSAY_STORE, else yours.")
]
_FEW = 3
"""Number of names shown beside a run; if there are more, they are counted."""


def history(
    run: WhichRun = None,
    verb: Verb = None,
    kernel: KernelName = None,
    status: StatusName = None,
    since: Since = None,
    limit: Limit = None,
    out: Out = None,
    imported: Import = None,
    store: Place = None,
    json: AsJson = False,
) -> None:
    """What was recorded: the runs, or with RUN the records of one. --out without RUN writes the records of all runs."""
    from assay.errors import UsageError
    from assay.report.export import export, writer
    from assay.store import open_store

    if imported and (run or out):
        raise UsageError("--import stands alone", fix="ask for a run or for --out in a second call")
    if out:
        writer(out)
    terminal = screen.console()
    # Reading a store that was named and does not exist must not create it.
    with open_store(store, create=store is None or bool(imported)) as opened:
        if imported:
            new, known = map(sum, zip(*(opened.import_document(file) for file in imported), strict=True))
            if json:
                screen.write_document([], verb="history", store=opened.where, imported={"new": new, "known": known})
            else:
                terminal.print(f"{new} new, {known} already there: {opened.where}", soft_wrap=True)
            return
        if run is None and not out:
            runs = opened.runs(verb=verb, kernel=kernel, status=status, since=since, limit=limit)
            if json:
                screen.write_document([], verb="history", store=opened.where, runs=[asdict(r) for r in runs])
            else:
                _runs(runs, opened.where)
            return
        which = None if run is None else opened.run(run, verb=verb)
        records = list(opened.records(run=which, verb=verb, kernel=kernel, status=status, since=since, limit=limit))
        about: dict[str, Any] = {"verb": "history", "store": opened.where} | ({"run": which} if which else {})
    if out:
        export(records, out, **about)
    if json:
        screen.write_document(records, **about)
    elif out:
        terminal.print(f"{len(records)} records: {out}", soft_wrap=True)
    else:
        _records(records)


def _runs(runs: list[Run], where: str) -> None:
    from rich.markup import escape
    from rich.table import Table

    terminal = screen.console()
    if not runs:
        terminal.print(f"no such run in {where}", soft_wrap=True)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("run", "verb", "records"):
        table.add_column(name, no_wrap=True)
    table.add_column("kernels")
    table.add_column("when (UTC)", no_wrap=True)
    table.add_column("device")
    table.add_column("commit", no_wrap=True)
    for r in runs:
        counts = " ".join("[{1}]{0}{2}[/]".format(*screen.MARKS[s], n) for s, n in r.counts.items())
        when = r.first[:16].replace("T", " ")
        kernels = escape(summed_up(r.kernels))
        about = (when, device(r.device), r.commit)
        table.add_row(r.id or "–", escape(", ".join(r.verbs)), counts, kernels, *map(escape, about))
    terminal.print(table)
    terminal.print(f"{len(runs)} runs in {where}", style="dim", soft_wrap=True)


def summed_up(kernels: Sequence[str]) -> str:
    """Return `gelu/cuda, gelu/triton` or, for many kernels, the counts by op: `gelu (7), softmax (5) and 12 more`."""
    if len(kernels) <= _FEW:
        return ", ".join(kernels)
    by_op = Counter(name.partition("/")[0] for name in kernels)
    if len(by_op) == len(kernels):
        return f"{', '.join(kernels[:_FEW])} and {len(kernels) - _FEW} more"
    ops = [f"{op} ({number})" if number > 1 else op for op, number in by_op.items()]
    rest = sum(list(by_op.values())[_FEW:])
    return ", ".join(ops[:_FEW]) + (f" and {rest} more" if rest else "")


def device(name: str) -> str:
    """Return a device's name without its vendor's additions: `Intel Xeon Platinum 8481C`."""
    return " ".join(re.sub(r"\((R|TM|C)\)|\bCPU\b|@ [\d.]+ ?GHz", " ", name, flags=re.IGNORECASE).split())


def _records(records: list[Record]) -> None:
    from rich.markup import escape
    from rich.table import Table

    timed = any(r.median is not None for r in records)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("kernel", no_wrap=True)
    table.add_column("workload")
    table.add_column("status", no_wrap=True)
    for name in ("median", "95 %", "speedup") if timed else ():
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("reason")
    for r in records:
        lines = r.reason.splitlines() or [""]
        figures = _figures(r) if timed else ()
        table.add_row(escape(r.kernel), escape(_workload(r)), screen.status_text(r.status), *figures, escape(lines[0]))
    terminal = screen.console()
    terminal.print(table)
    terminal.print(f"\n{screen.summary(records)}" if records else "no such record")


def _workload(record: Record) -> str:
    """Return the workload, with the tunables that were set."""
    parameters = record.evidence.get("parameters")
    tuned = parameters if isinstance(parameters, dict) else {}  # a training's is the number of the model's parameters
    return " ".join([record.workload, *(f"{name}={value}" for name, value in tuned.items())])


def _figures(record: Record) -> tuple[str, str, str]:
    """Return `12.34 µs`, `±0.4 %`, `1.80×`; empty texts if nothing was timed."""
    from assay.bench.evidence import BenchEvidence

    if record.median is None:
        return "", "", ""
    low, high = record.interval or (record.median, record.median)
    spread = f"±{(high - low) / 2 / record.median:.1%}".replace("%", " %") if record.interval and record.median else ""
    speedup = BenchEvidence.of(record).speedup
    return duration(record.median), spread, f"{speedup.median:.2f}×" if speedup else ""
