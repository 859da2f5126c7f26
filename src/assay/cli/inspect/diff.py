"""`assay inspect diff`: what changed from one kernel's code to another's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.cli import screen
from assay.cli.inspect.gather import Targets, What, end, gathered, options
from assay.cli.options import AsJson, Compiler, FirstDType, Include, OneWorkload, OpName, Out, Param

if TYPE_CHECKING:
    from assay.inspect import Inspection
    from assay.record import Record


def diff(
    what: What,
    target: Targets = "sm_90",
    dtype: FirstDType = "",
    workload: OneWorkload = "",
    op: OpName = None,
    compiler: Compiler = "",
    include: Include = None,
    param: Param = None,
    json: AsJson = False,
    out: Out = None,
) -> None:
    """What changed from the first kernel to the second, instruction by instruction."""
    end([differ(gathered(what, options(target, dtype, workload, op, compiler, param), json), json)], json, out)


def differ(inspections: list[Inspection], json: bool) -> Record:
    from rich.table import Table

    from assay.errors import UsageError
    from assay.inspect.diff import record

    built = [one for one in inspections if one.table]
    for one in (o for o in inspections if not o.table):
        screen.console(stderr=True).print(f"{one.record.kernel}: {one.record.reason}")
    if len(built) != 2:
        raise UsageError(f"{len(built)} kernels to compare", fix="name two: assay inspect diff conv2d/cuda gelu/cuda")
    difference, changes = record(*built)
    if not json:
        terminal = screen.console()
        terminal.print(difference.reason, soft_wrap=True)
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("", built[0].record.kernel, "line", built[1].record.kernel, "line"):
            table.add_column(column)
        for kind, old, new in changes:
            table.add_row(kind, *_half(old), *_half(new))
        if table.row_count:
            terminal.print(table)
    return difference


def _half(row: Any) -> tuple[str, str]:
    from rich.markup import escape

    return (escape(row.text), str(row.source_line or "")) if row else ("", "")
