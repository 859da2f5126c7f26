"""What inspect's commands share: choosing and building kernels, and writing the results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli import screen, selection, session
from assay.cli.inspect.shown import show
from assay.cli.options import parameters, split

if TYPE_CHECKING:
    from assay.inspect import Inspection, Options
    from assay.record import Record

What = Annotated[
    list[str], typer.Argument(help="Kernels (gelu/triton, 'gelu/*'), or files (my.py, my.cu, .ptx, .cubin, …).")
]
Targets = Annotated[str, typer.Option("--target", help="What to build for: sm_80,sm_90,sm_100.")]


def options(
    target: str,
    dtype: str = "",
    workload: str = "",
    op: str | None = None,
    compiler: str = "",
    param: list[str] | None = None,
) -> Options:
    from assay.inspect import Options

    return Options(split(target), split(dtype), workload, op, compiler, parameters(param or []))


def gathered(
    what: list[str], options: Options, json: bool, quiet: bool = True, brief: bool = False
) -> list[Inspection]:
    """Build everything that was named; unless `quiet`, show each as it is ready."""
    from assay.catalog.select import gather
    from assay.inspect import inspections
    from assay.inspect.verb import bare
    from assay.store.keeper import kept

    with screen.progress(None, "inspect", json, "reading the kernels"):
        files = [w for w in what if bare(Path(w), options)]
        named = gather([w for w in what if w not in files], options.op, session.command)
        choices = selection.with_known_gates(named.choices, named.refused)
    session.refuse(named.refused)
    if not files and not choices:
        sys.exit(session.WRONG_USE)
    shared = selection.shared(kernel for kernel, _ in choices)
    built: list[Inspection] = []
    with screen.progress(None, "building", json, mixed=not quiet) as tick, kept() as keep:
        for one in inspections([*files, *choices], options, lambda doing: tick(doing, len(built))):
            built.append(one)
            if not json and not quiet:
                show(one, brief, shared)
            keep(one.record)
    return built


def end(
    records: list[Record],
    json: bool,
    out: Path | None,
    written: list[Path] | None = None,
    failing: tuple[str, ...] = ("fail",),
) -> None:
    """Write and print the document that was asked for, name the files, and exit with 1 if a record has a `failing`
    status."""
    files = written or []
    if out and screen.write_document(records, out, verb="inspect"):
        files.append(out)
    if json:
        screen.write_document(records, verb="inspect")
    elif files:
        screen.console().print("written: " + ", ".join(map(str, files)))
    sys.exit(1 if any(str(r.status) in failing for r in records) else screen.exit_code(records, False))
