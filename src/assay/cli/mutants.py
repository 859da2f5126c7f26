"""`assay selftest mutants`: does plain `check` notice small changes to kernels that are right?"""

from __future__ import annotations

import sys
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import screen
from assay.cli.options import AsJson, Device, Jobs, Out, Strict

if TYPE_CHECKING:
    from assay.record import Record


def mutants(
    what: Annotated[list[str] | None, typer.Argument(help="Ops, kernels or files whose kernels are changed.")] = None,
    jobs: Jobs = None,
    device: Device = "",
    json: AsJson = False,
    out: Out = None,
    strict: Strict = False,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="So many of each kernel.")] = None,
    sample: Annotated[int | None, typer.Option("--sample", min=1, help="So many, drawn with --seed.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of the sample.")] = None,
    part: Annotated[str, typer.Option("--slice", help="The second of five slices is 2/5.")] = "",
    operator: Annotated[str, typer.Option("--operator", help="Only these changes, e.g. mask,barrier.")] = "",
    proof: Annotated[float | None, typer.Option("--proof", min=0, help="Seconds to prove one equivalent.")] = None,
    keep: Annotated[Path | None, typer.Option("--keep", help="Leave their files in this folder.")] = None,
) -> None:
    """Change kernels a little and see that check notices: a comparison, a constant, a mask, a barrier, a cast."""
    chosen = {"jobs": jobs, "limit": limit, "sample": sample, "seed": seed, "seconds": proof, "keep": keep}
    settings: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    settings |= {"part": _slice(part)} if part else {}
    settings |= {"operators": _operators(operator)} if operator else {}
    perform(what or [], settings, json, out, strict)


def _slice(text: str) -> tuple[int, int]:
    """Parse `2/5` as (2, 5)."""
    from assay.errors import UsageError

    which, _, slices = text.partition("/")
    if not (which.isdigit() and slices.isdigit() and 1 <= int(which) <= int(slices)):
        raise UsageError(f"--slice {text} is no slice", fix="the second of five is --slice 2/5")
    return int(which), int(slices)


def _operators(text: str) -> tuple[str, ...]:
    from assay.errors import UsageError
    from assay.selftest.mutants.operators import OPERATORS

    named = tuple(filter(None, (t.strip() for t in text.split(","))))
    if unknown := [n for n in named if n not in OPERATORS]:
        raise UsageError(f"no operator called '{unknown[0]}'", fix=f"there are: {', '.join(OPERATORS)}")
    return named


def perform(what: list[str], settings: dict[str, Any], json: bool, out: Path | None, strict: bool) -> None:
    """Plan, run, print a line for each mutant and the scores, and exit with the right code."""
    from assay.selftest.mutants import MutantEvidence, Options, Outcome, plan, run, summary

    options = Options(**settings)
    with screen.progress(None, "mutants", json, "changing kernels"):
        planned, untried = plan(what, options)
    if not json:
        kernels = len({m.kernel.name for m in planned})
        screen.console().print(f"{len(planned)} mutants of {kernels} kernels")
    show = None if json else lambda record: screen.console().print(line(record), soft_wrap=True)

    def write(records: list[Record], interrupted: bool, where: Path | None) -> None:
        """Write the document. Stillborn mutants are counted in its summary and have no record."""
        shown = [r for r in records if MutantEvidence.of(r).outcome is not Outcome.STILLBORN]
        about = {"verb": "selftest", "run": options.run, "interrupted": interrupted, "summary": summary(records)}
        screen.write_document(shown, where, **about)

    def save(kept: list[Record]) -> None:
        if out:
            write(kept, True, out)

    names = [kernel.name for kernel, _ in untried] + [mutant.name for mutant in planned]
    records, interrupted = screen.collect(run(planned, untried, options), names, "mutants", json, show, save)
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
    """Print the survivors one by one, then the scores."""
    from rich.markup import escape
    from rich.table import Table

    from assay.selftest.mutants.evidence import MutantEvidence, Outcome, score, scores

    terminal = screen.console()
    judged = [(r, MutantEvidence.of(r)) for r in records]
    evidences = [e for _, e in judged if e.operator]
    for record, e in ((r, e) for r, e in judged if e.outcome is Outcome.SURVIVED):
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
