"""`assay doctor`: what this machine can do, and the fix for what is missing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli import screen

if TYPE_CHECKING:
    from rich.console import Console

    from assay.doctor import Finding

_WIDE = 80
"""The fewest columns of a terminal for a table of names, marks and sentences side by side."""


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
    terminal = screen.console()
    if terminal.width < _WIDE:
        _lines(findings, terminal)
    else:
        _table(findings, terminal)


def _lines(findings: list[Finding], terminal: Console) -> None:
    """Print the findings one below another, for a narrow terminal."""
    from rich.markup import escape

    group = ""
    for finding in findings:
        if finding.group != group:
            group = finding.group
            terminal.print(f"[bold underline]{group}[/]")
        terminal.print(f"{_mark(finding)} [bold]{escape(finding.name)}[/]: {escape(finding.what)}")
        if finding.fix and not finding.good:
            terminal.print(f"[cyan]→ {escape(finding.fix)}[/]")


def _table(findings: list[Finding], terminal: Console) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    group = ""
    for finding in findings:
        if finding.group != group:
            group = finding.group
            table.add_row(f"[underline]{group}[/]", "", "")
        fix = f"\n[cyan]→ {escape(finding.fix)}[/]" if finding.fix and not finding.good else ""
        table.add_row(f"  {finding.name}", _mark(finding), escape(finding.what) + fix)
    terminal.print(table)


def _mark(finding: Finding) -> str:
    return "[green]✓[/]" if finding.good else "[yellow]○[/]" if finding.fix else "[dim]–[/]"
