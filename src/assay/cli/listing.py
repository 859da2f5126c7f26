"""`assay list`: ops × backends × dtypes, and what can be done with each here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli import screen

if TYPE_CHECKING:
    from assay.kernel import Kernel
    from assay.record import Record

_MARK = {"run": "[green]●[/]", "interpret": "[green]◒[/]", "compile": "[cyan]◐[/]", "missing": "[yellow]○[/]"}
_MEANING = {"run": "runs", "interpret": "runs interpreted", "compile": "compiles only", "missing": "toolchain missing"}


def list_(
    what: Annotated[list[str] | None, typer.Argument(help="Only these ops, kernels or files.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="One machine-readable document on stdout, nothing else.")
    ] = False,
) -> None:
    """Ops × backends × dtypes: what can run, only compile, or is missing here, and why."""
    from assay.library.select import everything, select

    kernels = [k for k, _ in (select(what) if what else everything())]
    records = [r for k in kernels for r in _records(k)]
    if json:
        screen.write_document(records, verb="list")
        return
    _table(kernels, records)


def _records(kernel: Kernel) -> list[Record]:
    """One per dtype: what could be done with it here."""
    from assay.backends import Level, backend
    from assay.backends import here as available
    from assay.library import ops
    from assay.record import Record, Status

    toolchain = backend(kernel.address.backend)
    here = available(kernel)
    level = {
        Level.RUN: Status.PASS,
        Level.INTERPRET: Status.PASS,
        Level.COMPILE: Status.COMPILED,
        Level.MISSING: Status.SKIPPED,
    }[here.level]
    found = []
    for dtype in ops()[kernel.address.op].dtypes if kernel.address.op in ops() else kernel.dtypes:
        status, reason = level, here.reason or "runs here"
        if kernel.dtypes and dtype not in kernel.dtypes:
            status, reason = Status.SKIPPED, toolchain.refusal(dtype) or f"written for {', '.join(kernel.dtypes)} only"
        evidence = {"level": str(here.level), "fix": here.fix, "backend": toolchain.name}
        found.append(Record("list", kernel.name, f"dtype={dtype}", status, reason, evidence=evidence))
    return found


def _table(kernels: list[Kernel], records: list[Record]) -> None:
    from rich.table import Table

    from assay.backends import backends
    from assay.library import ops

    terminal = screen.console()
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("op", no_wrap=True)
    for b in backends():
        table.add_column(b.name)
    for op in dict.fromkeys(k.address.op for k in kernels):
        table.add_row(
            op,
            *(_cell([k for k in kernels if k.address.op == op and k.address.backend == b.name]) for b in backends()),
        )
    terminal.print(table)
    dtypes = sorted(
        {d for name in dict.fromkeys(k.address.op for k in kernels) if name in ops() for d in ops()[name].dtypes}
    )
    terminal.print(
        f"each in {', '.join(dtypes)}, but for those listed below"
        if any(k.dtypes for k in kernels)
        else f"each in {', '.join(dtypes)}"
    )
    if variants := _variants(kernels):
        terminal.print(f"several marks: also as variants ({variants})", soft_wrap=True)
    terminal.print("  ".join(f"{_MARK[level]} {meaning}" for level, meaning in _MEANING.items()))
    for b in backends():
        here = b.availability()
        if here.reason:
            terminal.print(
                f"  {b.name:<9} {here.reason}" + (f"  → {here.fix}" if here.fix else ""), style="dim", soft_wrap=True
            )
    for record in records:
        if str(record.status) == "skipped" and record.evidence["level"] != "missing":
            terminal.print(
                f"  {record.kernel} {record.workload.split('=')[1]}: {record.reason}", style="yellow", soft_wrap=True
            )


def _cell(kernels: list[Kernel]) -> str:
    """A mark for each kernel: the plain one and its variants."""
    from assay.backends import here

    return "".join(_MARK[str(here(k).level)] for k in kernels)


def _variants(kernels: list[Kernel]) -> str:
    """`njit: fastmath, parallel`, by language."""
    found: dict[str, dict[str, None]] = {}
    for k in kernels:
        if k.address.variant:
            found.setdefault(k.address.backend, {})[k.address.variant] = None
    return "; ".join(f"{backend}: {', '.join(names)}" for backend, names in found.items())
