"""`assay list`: ops × backends × dtypes, and what can be done with each here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli import screen, session
from assay.cli.options import AsJson, OpName

if TYPE_CHECKING:
    from assay.catalog.select import Choice
    from assay.kernel import Kernel
    from assay.op import Op
    from assay.record import Record

_MARK = {"run": "[green]●[/]", "interpret": "[green]◒[/]", "compile": "[cyan]◐[/]", "missing": "[yellow]○[/]"}
_MEANING = {"run": "runs", "interpret": "runs interpreted", "compile": "compiles only", "missing": "toolchain missing"}


def list_(
    what: Annotated[list[str] | None, typer.Argument(help="Only these ops, kernels or files.")] = None,
    op: OpName = None,
    json: AsJson = False,
) -> None:
    """Ops × backends × dtypes: what can run, only compile, or is missing here, and why."""
    from assay.catalog.select import everything, gather

    if what:
        selection = gather(what, op, session.command)
        session.refuse(selection.refused)
        choices = selection.choices
        if not choices:
            sys.exit(session.WRONG_USE)
        choices = _with_derived(choices)
    else:
        choices = everything()
    records = [r for kernel, op in choices for r in _records(kernel, op)]
    if json:
        screen.write_document(records, verb="list")
        return
    _table(choices, records)


def _with_derived(choices: list[Choice]) -> list[Choice]:
    """Return the kernels, and those derived from the references of the user's own ops."""
    from assay.catalog.derived import completed
    from assay.catalog.reader import LIBRARY

    result: dict[str, Choice] = {kernel.identity: (kernel, op) for kernel, op in choices}
    for op in {(op.name, op.source): op for _, op in choices}.values():
        if LIBRARY not in Path(op.source).parents:
            of_op = [k for k, o in choices if (o.name, o.source) == (op.name, op.source)]
            result |= {k.identity: (k, op) for k in completed(op, of_op)}
    return list(result.values())


def _records(kernel: Kernel, op: Op) -> list[Record]:
    """Return one record per dtype, which says what can be done with it here."""
    from assay import provenance
    from assay.backends import Level, backend
    from assay.backends import here as available
    from assay.record import Record, Status

    toolchain = backend(kernel.address.backend)
    here = available(kernel)
    level = {
        Level.RUN: Status.PASS,
        Level.INTERPRET: Status.PASS,
        Level.COMPILE: Status.COMPILED,
        Level.MISSING: Status.SKIPPED,
    }[here.level]
    records = []
    source = provenance.source_of(kernel.home, kernel.line)
    for dtype in op.dtypes:
        status, reason = level, here.reason or "runs here"
        if kernel.dtypes and dtype not in kernel.dtypes:
            status, reason = Status.SKIPPED, toolchain.refusal(dtype) or f"written for {', '.join(kernel.dtypes)} only"
        evidence = {"level": str(here.level), "fix": here.fix, "backend": toolchain.name}
        records.append(Record("list", kernel.name, f"dtype={dtype}", status, reason, evidence=evidence, source=source))
    return records


def _table(choices: list[Choice], records: list[Record]) -> None:
    from rich.table import Table

    from assay.backends import backends
    from assay.record import namesakes

    terminal = screen.console()
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("op", no_wrap=True)
    for b in backends():
        table.add_column(b.name, no_wrap=True)
    kernels = [k for k, _ in choices]
    for (name, source), op in {(op.name, op.source): op for _, op in choices}.items():
        of_op = [k for k, o in choices if (o.name, o.source) == (name, source)]
        table.add_row(op.name, *(_cell([k for k in of_op if k.address.backend == b.name]) for b in backends()))
    terminal.print(table)
    dtypes = sorted({d for _, op in choices for d in op.dtypes})
    terminal.print(
        f"each in {', '.join(dtypes)}, but for those listed below"
        if any(k.dtypes for k in kernels)
        else f"each in {', '.join(dtypes)}"
    )
    if variants := _variants(kernels):
        terminal.print(f"several marks: also as variants ({variants})")
    terminal.print("  ".join(f"{_MARK[level]} {meaning}" for level, meaning in _MEANING.items()))
    for b in backends():
        here = b.availability()
        if here.reason:
            terminal.print(f"  {b.name:<9} {here.reason}" + (f"  → {here.fix}" if here.fix else ""), style="dim")
    apart = namesakes(records)
    for record in records:
        if str(record.status) == "skipped" and record.evidence["level"] != "missing":
            terminal.print(f"  {record.named(apart)} {record.dtype}: {record.reason}", style="yellow")


def _cell(kernels: list[Kernel]) -> str:
    """Return a mark for each kernel: the plain one and its variants."""
    from assay.backends import here

    return "".join(_MARK[str(here(k).level)] for k in kernels)


def _variants(kernels: list[Kernel]) -> str:
    """Return the variants by language: `njit: fastmath, parallel`."""
    variants: dict[str, dict[str, None]] = {}
    for k in kernels:
        if k.address.variant:
            variants.setdefault(k.address.backend, {})[k.address.variant] = None
    return "; ".join(f"{backend}: {', '.join(names)}" for backend, names in variants.items())
