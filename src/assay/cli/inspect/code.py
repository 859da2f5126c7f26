"""`assay inspect` itself: every instruction of a kernel."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli import keeping, screen
from assay.cli.inspect.across import side_by_side
from assay.cli.inspect.diff import differ
from assay.cli.inspect.gather import Targets, What, end, gathered, options
from assay.cli.inspect.phases import FOLDER, compiled
from assay.cli.inspect.since import changed
from assay.cli.options import AsJson, Compiler, FirstDType, Include, JUnit, OneWorkload, OpName, Out, Param

if TYPE_CHECKING:
    from assay.inspect import Inspection
    from assay.record import Record

Brief = Annotated[bool, typer.Option("--summary", help="Without the instructions.")]
Csv = Annotated[Path | None, typer.Option("--csv", help="The instructions as CSV, into this file.")]
Parquet = Annotated[Path | None, typer.Option("--parquet", help="The instructions as Parquet, into this file.")]
Html = Annotated[Path | None, typer.Option("--html", help="A page with linked panes: source, IR, PTX, SASS.")]
Old = Annotated[bool, typer.Option(hidden=True)]
OldFile = Annotated[Path | None, typer.Option(hidden=True)]
OldFolder = Annotated[Path, typer.Option(hidden=True)]


def inspect(
    what: What,
    target: Targets = "sm_90",
    dtype: FirstDType = "",
    workload: OneWorkload = "",
    op: OpName = None,
    compiler: Compiler = "",
    include: Include = None,
    param: Param = None,
    summary: Brief = False,
    html: Html = None,
    csv: Csv = None,
    parquet: Parquet = None,
    json: AsJson = False,
    out: Out = None,
    junit: JUnit = None,
    diff: Old = False,
    across: Old = False,
    since: OldFile = None,
    phases: Old = False,
    keep: OldFolder = FOLDER,
) -> None:
    """What was it compiled to? Every instruction with its source line, PTX line, control code, pipe and registers.

    \b
    assay inspect diff A B: what changed from one kernel to another.
    assay inspect across gelu: kernels side by side.
    assay inspect since OLD.json gelu: whose code changed since, and how.
    assay inspect phases my.cu: nvcc's own steps."""
    from assay.inspect.export import export

    chosen = options(target, dtype, workload, op, compiler, param)
    if phases:
        _hint("phases", f"phases {' '.join(what)}")
        end(compiled(what, chosen, keep, json), json, out)
    other = bool(diff or across or since)
    inspections = gathered(what, chosen, json, quiet=other, brief=summary or html is not None)
    records = [one.record for one in inspections]
    if diff:
        _hint("diff", f"diff {' '.join(what)}")
        records = [differ(inspections, json)]
    elif across:
        _hint("across", f"across {' '.join(what)}")
        if not json:
            side_by_side(records)
    elif since:
        _hint("since", f"since {since} {' '.join(what)}")
        records = changed(records, since, json)
    written = [html] if html and keeping.written("the page", html, lambda: _page(inspections, html)) else []
    for file, kind in ((csv, "csv"), (parquet, "parquet")):
        if file and keeping.written("the instructions", file, partial(export, records, file, kind)):
            written.append(file)
    if junit and keeping.junit_written(records, junit, "inspect"):
        written.append(junit)
    end(records, json, out, written)


def _hint(flag: str, command: str) -> None:
    """Print the command that replaces an old flag, which still works for one release."""
    screen.console(stderr=True).print(f"--{flag} will go: assay inspect {command}", style="dim", soft_wrap=True)


def _page(inspections: list[Inspection], out: Path) -> None:
    from assay.report.code import code, write

    timed = _timed()
    write([code(one, timed) for one in inspections if one.table], out)


def _timed() -> list[Record]:
    """Return bench's records, if any: the page shows the times of the very same code."""
    from assay.errors import AssayError
    from assay.store import open_store

    try:
        with open_store(create=False) as store:
            return list(store.records(verb="bench"))
    except AssayError:
        return []
