"""`assay doctor`: what this machine can do, and the fix for what is missing."""

from __future__ import annotations

import shutil
import sys
from typing import Annotated

import typer

from assay.cli import screen


def doctor(
    json: Annotated[
        bool, typer.Option("--json", help="One machine-readable document on stdout, nothing else.")
    ] = False,
) -> None:
    """What this machine can do: GPU, driver, compilers, profilers, memory, versions; and how to get what is missing."""
    from assay import doctor as examine

    findings = list(examine.findings())
    if json:
        screen.write_document([f.record() for f in findings], verb="doctor")
        sys.exit(0)
    from rich.table import Table

    terminal = screen.console()
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(max_width=max(40, shutil.get_terminal_size((100, 24)).columns - 34), overflow="fold")
    group = ""
    for finding in findings:
        if finding.group != group:
            group = finding.group
            table.add_row(f"[underline]{group}[/]", "", "")
        mark = "[green]✓[/]" if finding.good else "[yellow]○[/]" if finding.fix else "[dim]–[/]"
        table.add_row(
            f"  {finding.name}",
            mark,
            finding.what + (f"\n[cyan]→ {finding.fix}[/]" if finding.fix and not finding.good else ""),
        )
    terminal.print(table)
