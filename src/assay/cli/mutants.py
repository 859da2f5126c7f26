"""`assay selftest mutants`: does plain `check` notice small changes to kernels that are right?"""

from __future__ import annotations

import sys
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli import screen

if TYPE_CHECKING:
    from assay.record import Record


def perform(what: list[str], settings: dict[str, Any], json: bool, out: Path | None, strict: bool) -> None:
    """Plan, run, print a line for each mutant and the scores, and exit with the right code."""
    from assay.selftest.mutants import MutantEvidence, Options, Outcome, plan, run, summary

    options = Options(**settings)
    planned, untried = plan(what, options)
    terminal = screen.console()
    if not json:
        kernels = len({m.kernel.name for m in planned})
        terminal.print(f"{len(planned)} mutants of {kernels} kernels")
    show = None if json else lambda record: terminal.print(line(record), soft_wrap=True)

    def write(records: list[Record], interrupted: bool, where: Path | None) -> None:
        """What is no kernel is counted in the summary and has no record."""
        shown = [r for r in records if MutantEvidence.of(r).outcome is not Outcome.STILLBORN]
        about = {"verb": "selftest", "run": options.run, "interrupted": interrupted, "summary": summary(records)}
        screen.write_document(shown, where, **about)

    def save(kept: list[Record]) -> None:
        if out:
            write(kept, True, out)

    total = len(planned) + len(untried)
    records, interrupted = screen.collect(run(planned, untried, options), total, "mutants", json, show, save)
    order = {m.name: i for i, m in enumerate(planned)}
    records = sorted(records, key=lambda r: order.get(r.kernel, -1))
    if out:
        write(records, interrupted, out)
    if json:
        write(records, interrupted, None)
    else:
        report(records, interrupted)
    sys.exit(screen.exit_code(records, strict, interrupted))


def line(record: Record) -> str:
    from rich.markup import escape

    from assay.selftest.mutants import MutantEvidence

    e = MutantEvidence.of(record)
    change = f"  [dim]{escape(_short(e.before))} → {escape(_short(e.after))}[/]" if e.operator else ""
    said = escape(record.reason.splitlines()[0])
    return f"{screen.status_text(record.status)}  {escape(record.kernel)}{change}  {said}"


def _short(text: str, longest: int = 48) -> str:
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def report(records: list[Record], interrupted: bool) -> None:
    """The survivors one by one, then the scores."""
    from rich.markup import escape
    from rich.table import Table

    from assay.selftest.mutants.evidence import MutantEvidence, Outcome, score, scores

    terminal = screen.console()
    found = [(r, MutantEvidence.of(r)) for r in records]
    evidences = [e for _, e in found if e.operator]
    for record, e in ((r, e) for r, e in found if e.outcome is Outcome.SURVIVED):
        terminal.print(f"\n[bold red]✗ {escape(record.kernel)}[/] survived: {escape(e.proof)}")
        terminal.print(f"  {e.file}:{e.line}", style="dim")
        terminal.print(f"  - {escape(e.before)}\n  + {escape(e.after)}", soft_wrap=True)
        if e.differs_at:
            terminal.print(f"  differs  {escape(e.differs_at)}", soft_wrap=True)
        terminal.print(f"  replay   {escape(record.replay)}", style="cyan", soft_wrap=True)
    for title, by in (("operator", attrgetter("operator")), ("language", attrgetter("backend"))):
        table = Table(title, "killed", "survived", "equivalent", "stillborn", "score", box=None, pad_edge=False)
        for name, one in scores(evidences, by).items():
            counts = (one.killed, one.survived, one.equivalent, one.stillborn)
            table.add_row(name, *(str(n) for n in counts), f"{one.share:.1%}" if one.counted else "")
        terminal.print()
        terminal.print(table)
    terminal.print(f"\n{score(evidences)}" + (" — interrupted; this is what was done" if interrupted else ""))
