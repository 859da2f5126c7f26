"""`assay inspect phases`: the steps of nvcc."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli import screen
from assay.cli.inspect.gather import Targets, end, options
from assay.cli.options import AsJson, Out
from assay.units import count
from assay.watching import left

if TYPE_CHECKING:
    from assay.inspect import Options
    from assay.record import Record

Files = Annotated[list[str], typer.Argument(help="CUDA sources: my.cu.")]
Keep = Annotated[Path, typer.Option("--keep", help="Where everything is kept.")]
FOLDER = Path("assay-phases")


def phases(what: Files, target: Targets = "sm_90", keep: Keep = FOLDER, json: AsJson = False, out: Out = None) -> None:
    """nvcc's own steps for .cu files, each run, timed and kept."""
    end(compiled(what, options(target), keep, json), json, out)


def compiled(what: list[str], options: Options, keep: Path, json: bool) -> list[Record]:
    from rich.table import Table

    from assay.inspect.phases import many
    from assay.inspect.phases.record import record
    from assay.target import target

    files, targets = [Path(w) for w in what], [target(t) for t in options.targets]
    records = []
    doing = left([f"{file.name} for {target}" for file in files for target in targets])
    with screen.progress(len(files) * len(targets), "compiling", json, doing, mixed=True) as tick:
        for build in many(files, targets, keep, os.cpu_count() or 1, tick):
            records.append(record(build, options.run))
            if json:
                continue
            terminal = screen.console()
            terminal.print(f"[bold]{build.file}[/]  {build.target}  {records[-1].reason}", soft_wrap=True)
            table = Table(box=None, pad_edge=False, header_style="bold")
            for column in ("step", "time", "reads", "writes"):
                table.add_column(column, justify="right" if column == "time" else "left")
            for step in build.steps:
                here = [Path(f.path).name for f in step.reads if Path(f.path).name.startswith(build.file.stem + ".")]
                others = len(step.reads) - len(here)
                own = [*here, f"+ {count(others, 'header')}"] if others else here
                took = f"{step.seconds * 1e3:.0f} ms" if step.seconds is not None else ""
                table.add_row(step.name, took, " ".join(own), " ".join(Path(f.path).name for f in step.writes))
            terminal.print(table)
    if not json:
        screen.console().print(f"kept: {keep}/ ; replay.sh in each folder runs the steps one by one")
    return records
