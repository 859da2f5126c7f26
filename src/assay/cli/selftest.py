"""`assay selftest`: does the tester catch what it must?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli import screen

if TYPE_CHECKING:
    from assay.record import Record


def selftest(
    what: Annotated[list[str] | None, typer.Argument(help="Only these entries.")] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Entries side by side.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="One machine-readable document on stdout, nothing else.")
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Also write that document to a file.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="What was not run counts as a failure.")] = False,
) -> None:
    """Test the tester: every wrong or cheating kernel of the corpus must be caught, and its mended twin must pass."""
    from assay.selftest import selftest
    from assay.selftest.entry import entries

    chosen = entries(what)
    terminal = screen.console()
    width = max(len(e.name) for e in chosen)
    show = None if json else lambda record: terminal.print(_line(record, width))

    def save(kept: list[Record]) -> None:
        if out:
            screen.write_document(kept, out, verb="selftest", interrupted=True)

    records, interrupted = screen.collect(selftest(what, jobs=jobs), len(chosen), "selftest", json, show, save)
    if out:
        screen.write_document(records, out, verb="selftest", interrupted=interrupted)
    if json:
        screen.write_document(records, verb="selftest", interrupted=interrupted)
    else:
        terminal.print(f"\n{screen.summary(records)}: caught by the named detector, and the mended twin passes")
    sys.exit(screen.exit_code(records, strict, interrupted))


def _line(record: Record, width: int) -> str:
    from rich.markup import escape

    evidence = record.evidence
    seen = f"caught by [bold]{evidence.get('caught_by')}[/], twin {evidence.get('twin')}"
    caught = seen if str(record.status) == "pass" else escape(record.reason)
    what = escape(evidence.get("entry", ""))
    return f"{record.kernel:<{width}}  {screen.status_text(record.status)}  {caught}  [dim]{what}[/]"
