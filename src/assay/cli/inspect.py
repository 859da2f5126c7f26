"""`assay inspect`: what was it compiled to?"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import keeping, screen, selection, session
from assay.cli.check import AsJson, OneWorkload, OpName, Out, Param, parameters
from assay.cli.inspected import show

if TYPE_CHECKING:
    from assay.inspect import Inspection, Options
    from assay.record import Record

What = Annotated[
    list[str], typer.Argument(help="Kernels (gelu/triton, 'gelu/*'), or files (my.py, my.cu, .ptx, .cubin, …).")
]
Targets = Annotated[str, typer.Option("--target", help="What to build for: sm_80,sm_90,sm_100.")]
DTypes = Annotated[str, typer.Option("--dtype", help="fp32,bf16,fp16; default: the first the op declares.")]
Brief = Annotated[bool, typer.Option("--summary", help="Without the instructions.")]
Compiler = Annotated[str, typer.Option("--compiler", help="Of CUDA C++: nvrtc or nvcc.")]
Csv = Annotated[Path | None, typer.Option("--csv", help="The instructions as CSV, into this file.")]
Parquet = Annotated[Path | None, typer.Option("--parquet", help="The instructions as Parquet, into this file.")]


Html = Annotated[Path | None, typer.Option("--html", help="A page with linked panes: source, IR, PTX, SASS.")]
Diff = Annotated[bool, typer.Option("--diff", help="What changed from the first kernel to the second.")]
Across = Annotated[bool, typer.Option("--across", help="All kernels named, side by side: gelu in every language.")]
Since = Annotated[
    Path | None, typer.Option("--since", help="An older --out document: which kernels' code changed, and how.")
]
Steps = Annotated[bool, typer.Option("--phases", help="nvcc's own steps for .cu files, each run, timed and kept.")]
Keep = Annotated[Path, typer.Option("--keep", help="With --phases: where everything is kept.")]


def inspect(
    what: What,
    target: Targets = "sm_90",
    dtype: DTypes = "",
    workload: OneWorkload = "",
    op: OpName = None,
    compiler: Compiler = "",
    param: Param = None,
    summary: Brief = False,
    diff: Diff = False,
    across: Across = False,
    since: Since = None,
    phases: Steps = False,
    keep: Keep = Path("assay-phases"),
    html: Html = None,
    csv: Csv = None,
    parquet: Parquet = None,
    json: AsJson = False,
    out: Out = None,
) -> None:
    """What was it compiled to? Every instruction with its source line, PTX line, control code, pipe and registers."""
    from assay.inspect import Options
    from assay.inspect.export import export

    targets, dtypes = (tuple(filter(None, text.split(","))) for text in (target, dtype))
    options = Options(targets, dtypes, workload, op, compiler, parameters(param or []))
    written: list[Path] = []
    if phases:
        records = _phases(what, options, keep, json)
    else:
        found = _gathered(what, options, json, quiet=bool(diff or across or since), brief=summary or html is not None)
        records = [one.record for one in found]
        if diff:
            records = [_differ(found, json)]
        elif across and not json:
            _side_by_side(records)
        elif since:
            records = _since(records, since, json)
        if html and keeping.written("the page", html, lambda: _page(found, html)):
            written.append(html)
    for file, kind in ((csv, "csv"), (parquet, "parquet")):
        if file and keeping.written("the instructions", file, partial(export, records, file, kind)):
            written.append(file)
    if out and screen.write_document(records, out, verb="inspect"):
        written.append(out)
    if json:
        screen.write_document(records, verb="inspect")
    elif written:
        screen.console().print("written: " + ", ".join(map(str, written)))
    sys.exit(screen.exit_code(records, False, False))


def _gathered(what: list[str], options: Options, json: bool, quiet: bool, brief: bool) -> list[Inspection]:
    from assay.catalog.select import gather
    from assay.inspect import inspections
    from assay.inspect.verb import bare

    files = [w for w in what if bare(Path(w), options)]
    named = gather([w for w in what if w not in files], options.op)
    session.refuse(named.refused)
    if not files and not named.choices:
        sys.exit(session.WRONG_USE)
    shared = selection.shared(kernel for kernel, _ in named.choices)
    found: list[Inspection] = []
    with screen.progress(0, "building", quiet=json) as tick, keeping.kept() as keep:
        for one in inspections([*files, *named.choices], options, lambda doing: tick(doing, len(found))):
            found.append(one)
            if not json and not quiet:
                show(one, brief, shared)
            keep(replace(one.record, instructions=None))  # the code can be built again; what follows from it is kept
    return found


def _differ(found: list[Inspection], json: bool) -> Record:
    from rich.table import Table

    from assay.errors import UsageError
    from assay.inspect.diff import record

    built = [one for one in found if one.table]
    for one in (o for o in found if not o.table):
        screen.console(stderr=True).print(f"{one.record.kernel}: {one.record.reason}")
    if len(built) != 2:
        raise UsageError(f"{len(built)} kernels to compare", fix="name two: assay inspect conv2d/cuda gelu/cuda --diff")
    told, changes = record(*built)
    if not json:
        terminal = screen.console()
        terminal.print(told.reason, soft_wrap=True)
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("", built[0].record.kernel, "line", built[1].record.kernel, "line"):
            table.add_column(column, overflow="fold")
        for kind, old, new in changes:
            table.add_row(kind, *_half(old), *_half(new))
        if table.row_count:
            terminal.print(table)
    return told


def _since(records: list[Record], file: Path, json: bool) -> list[Record]:
    from assay.errors import UsageError
    from assay.inspect.since import changes
    from assay.record import read

    try:
        found = list(changes(read(file), records))
    except (OSError, ValueError, KeyError) as problem:
        raise UsageError(
            f"{file} is no document of inspect: {problem}", fix="assay inspect … --out FILE writes one"
        ) from None
    if not found:
        raise UsageError(f"{file} has none of these kernels", fix="inspect the same kernels, workloads and targets")
    for r in found if not json else ():
        screen.console().print(
            f"{screen.status_text(str(r.status))}  {r.kernel}  {r.workload}: {r.reason}", soft_wrap=True
        )
    return found


def _half(row: Any) -> tuple[str, str]:
    from rich.markup import escape

    return (escape(row.text), str(row.source_line or "")) if row else ("", "")


def _side_by_side(records: list[Record]) -> None:
    from rich.table import Table

    from assay.inspect.evidence import InspectEvidence
    from assay.record import namesakes

    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = ("kernel", "dtype", "target", "code", "registers", "occupancy", "global loads", "stores", "fused", "mufu")
    for column in columns:
        table.add_column(column, justify="left" if column in columns[:3] else "right")
    apart = namesakes(records)
    for r in (r for r in records if r.instructions):
        e = InspectEvidence.of(r)
        s = e.summary
        assert s
        share = s.occupancy.share
        wide = [", ".join(f"{n}×{w}" for w, n in s.widths.get(f"global {k}", {}).items()) for k in ("load", "store")]
        table.add_row(
            r.named(apart),
            r.dtype,
            e.target,
            str(s.instructions),
            str(s.registers),
            f"{share:.0%}" if share is not None else "",
            *wide,
            str(s.multiply_add.fused),
            str(s.mix.get("xu", 0)),
        )
    screen.console().print(table)
    left = [r for r in records if not r.instructions]
    for r in (r for r in left if str(r.status) != "skipped"):
        screen.console().print(f"{screen.status_text(str(r.status))}  {r.kernel}: {r.reason}", soft_wrap=True)
    if skipped := [r.kernel for r in left if str(r.status) == "skipped"]:
        screen.console().print(f"no machine code of a GPU: {', '.join(skipped)}", style="dim", soft_wrap=True)


def _phases(what: list[str], options: Options, keep: Path, json: bool) -> list[Record]:
    import os

    from rich.table import Table

    from assay.inspect.phases import many
    from assay.inspect.phases.record import record
    from assay.target import target

    files, targets = [Path(w) for w in what], [target(t) for t in options.targets]
    records = []
    with screen.progress(len(files) * len(targets), "compiling", quiet=json) as tick:
        for build in many(files, targets, keep, os.cpu_count() or 1, tick):
            records.append(record(build, options.run))
            if json:
                continue
            terminal = screen.console()
            terminal.print(f"[bold]{build.file}[/]  {build.target}  {records[-1].reason}", soft_wrap=True)
            table = Table(box=None, pad_edge=False, header_style="bold")
            for column in ("step", "time", "reads", "writes"):
                table.add_column(column, justify="right" if column == "time" else "left", overflow="fold")
            for step in build.steps:
                here = [Path(f.path).name for f in step.reads if Path(f.path).name.startswith(build.file.stem + ".")]
                others = len(step.reads) - len(here)
                own = [*here, f"+ {others} headers"] if others else here
                took = f"{step.seconds * 1e3:.0f} ms" if step.seconds is not None else ""
                table.add_row(step.name, took, " ".join(own), " ".join(Path(f.path).name for f in step.writes))
            terminal.print(table)
    if not json:
        screen.console().print(f"kept: {keep}/ ; replay.sh in each folder runs the steps one by one")
    return records


def _page(found: list[Inspection], out: Path) -> None:
    from assay.report.code import write
    from assay.report.inspected import code

    timed = _timed()
    write([code(one, timed) for one in found if one.table], out)


def _timed() -> list[Record]:
    """What bench has recorded, if anything: numbers of the very same code stand beside it."""
    from assay.errors import AssayError
    from assay.store import open_store

    try:
        with open_store(create=False) as store:
            return list(store.records(verb="bench"))
    except AssayError:
        return []
