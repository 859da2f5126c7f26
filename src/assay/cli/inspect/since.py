"""`assay inspect since`: whose code changed since an older document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli import keeping, screen
from assay.cli.inspect.gather import Targets, What, end, gathered, options
from assay.cli.options import AsJson, Compiler, FirstDType, Include, JUnit, OneWorkload, OpName, Out, Param

if TYPE_CHECKING:
    from assay.record import Record

Old = Annotated[Path, typer.Argument(help="A document that `assay inspect … --out` wrote.")]
Strict = Annotated[bool, typer.Option("--strict", help="A change of the machine code counts as a failure.")]


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
    junit: JUnit = None,
    strict: Strict = False,
) -> None:
    """Which kernels' code changed since an older document, and how; both compilers are named.

    The exit code is 1 if a kernel does not compile or breaks a gate; with --strict, also if its code changed.
    A kernel that the older document does not have is skipped."""
    inspections = gathered(what, options(target, dtype, workload, op, compiler, param), json)
    records = changed([one.record for one in inspections], old, json)
    written = [junit] if junit and keeping.junit_written(records, junit, "inspect since") else []
    end(records, json, out, written, failing=("fail", "inconclusive") if strict else ("fail",))


def changed(records: list[Record], file: Path, json: bool) -> list[Record]:
    from rich.markup import escape

    from assay.errors import UsageError
    from assay.inspect.since import changes
    from assay.record import read

    try:
        older = [r for r in read(file) if r.verb == "inspect"]
        differences = list(changes(older, records))
    except (OSError, ValueError, KeyError) as problem:
        raise UsageError(
            f"{file} is no document of inspect: {problem}", fix="assay inspect … --out FILE writes one"
        ) from None
    if all(r.status == "skipped" for r in differences):
        have = dict.fromkeys(f"{r.kernel} {r.workload} {r.evidence.get('target', '')}".strip() for r in older)
        fix = "inspect one that it has: " + ", ".join([*list(have)[:3], *(["…"] if len(have) > 3 else [])])
        raise UsageError(f"{file} has none of these kernels", fix=fix if have else "assay inspect … --out FILE")
    for r in differences if not json else ():
        text = escape(f"{r.kernel}  {r.workload}  {r.evidence.get('target', '')}: {r.reason}")
        screen.console().print(f"{screen.status_text(str(r.status))}  {text}", soft_wrap=True)
    return differences
