"""`assay inspect since`: whose code changed since an older document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli import screen
from assay.cli.inspect.gather import Targets, What, end, gathered, options
from assay.cli.options import AsJson, Compiler, FirstDType, Include, OneWorkload, OpName, Out, Param

if TYPE_CHECKING:
    from assay.record import Record

Old = Annotated[Path, typer.Argument(help="A document that `assay inspect … --out` wrote.")]


def since(
    old: Old,
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
    """Which kernels' code changed since an older document, and how; both compilers are named."""
    inspections = gathered(what, options(target, dtype, workload, op, compiler, param), json)
    end(changed([one.record for one in inspections], old, json), json, out)


def changed(records: list[Record], file: Path, json: bool) -> list[Record]:
    from assay.errors import UsageError
    from assay.inspect.since import changes
    from assay.record import read

    try:
        differences = list(changes(read(file), records))
    except (OSError, ValueError, KeyError) as problem:
        raise UsageError(
            f"{file} is no document of inspect: {problem}", fix="assay inspect … --out FILE writes one"
        ) from None
    if not differences:
        raise UsageError(f"{file} has none of these kernels", fix="inspect the same kernels, workloads and targets")
    for r in differences if not json else ():
        screen.console().print(
            f"{screen.status_text(str(r.status))}  {r.kernel}  {r.workload}: {r.reason}", soft_wrap=True
        )
    return differences
