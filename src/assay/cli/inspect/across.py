"""`assay inspect across`: kernels side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.cli import screen
from assay.cli.inspect.gather import Targets, What, end, gathered, options
from assay.cli.options import AsJson, Compiler, FirstDType, Include, OneWorkload, OpName, Out, Param

if TYPE_CHECKING:
    from assay.record import Record


def across(
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
    """All kernels named, side by side: gelu in every language."""
    records = [one.record for one in gathered(what, options(target, dtype, workload, op, compiler, param), json)]
    if not json:
        side_by_side(records)
    end(records, json, out)


def side_by_side(records: list[Record]) -> None:
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
