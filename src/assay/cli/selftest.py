"""`assay selftest`: does the tester catch what it must?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli import screen
from assay.cli.group import verb_app
from assay.cli.mutants import mutants
from assay.cli.options import AsJson, Device, Jobs, Out, Strict

if TYPE_CHECKING:
    from assay.record import Record


def selftest(
    what: Annotated[list[str] | None, typer.Argument(help="Only these entries.")] = None,
    jobs: Jobs = None,
    device: Device = "",
    json: AsJson = False,
    out: Out = None,
    strict: Strict = False,
) -> None:
    """Test the tester: every wrong or cheating kernel of the corpus must be caught, and its fixed twin must pass.

    \b
    assay selftest mutants gelu: every small change to a kernel of the library must be noticed."""
    from assay.selftest.entry import entries
    from assay.selftest.verb import selftest as run

    chosen = entries(what)
    width = max(len(e.name) for e in chosen)
    show = None if json else lambda record: screen.console().print(_line(record, width))

    def save(kept: list[Record]) -> None:
        if out:
            screen.write_document(kept, out, verb="selftest", interrupted=True)

    names = [e.name for e in chosen]
    records, interrupted = screen.collect(run(what, jobs=jobs), names, "selftest", json, show, save)
    if out:
        screen.write_document(records, out, verb="selftest", interrupted=interrupted)
    if json:
        screen.write_document(records, verb="selftest", interrupted=interrupted)
    else:
        screen.console().print(f"\n{screen.summary(records)}: caught by the named detector, and the fixed twin passes")
    sys.exit(screen.exit_code(records, strict, interrupted))


def _line(record: Record, width: int) -> str:
    from rich.markup import escape

    from assay.selftest.evidence import SelftestEvidence

    evidence = SelftestEvidence.of(record)
    seen = f"caught by [bold]{evidence.caught_by}[/], twin {evidence.twin}"
    caught = seen if str(record.status) == "pass" else escape(record.reason)
    what = escape(evidence.entry)
    return f"{record.kernel:<{width}}  {screen.status_text(record.status)}  {caught}  [dim]{what}[/]"


app = verb_app(selftest, mutants)
