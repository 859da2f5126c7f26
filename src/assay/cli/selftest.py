"""`assay selftest`: does the tester catch what it must?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli import screen

if TYPE_CHECKING:
    from assay.record import Record


def selftest(
    what: Annotated[
        list[str] | None,
        typer.Argument(help="Only these entries. Or `mutants`, and the ops or kernels that are to be changed."),
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Kernels side by side.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="One machine-readable document on stdout, nothing else.")
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Also write that document to a file.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="What was not run counts as a failure.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="mutants: so many of each kernel.")] = None,
    sample: Annotated[int | None, typer.Option("--sample", min=1, help="mutants: so many, drawn with --seed.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="mutants: of the sample.")] = None,
    part: Annotated[str, typer.Option("--slice", help="mutants: the second of five slices is 2/5.")] = "",
    operator: Annotated[str, typer.Option("--operator", help="mutants: only these changes, e.g. mask,barrier.")] = "",
    proof: Annotated[
        float | None, typer.Option("--proof", min=0, help="mutants: seconds to prove that one is equivalent.")
    ] = None,
    keep: Annotated[Path | None, typer.Option("--keep", help="mutants: leave their files in this folder.")] = None,
) -> None:
    """Test the tester: every wrong or cheating kernel of the corpus must be caught, and its mended twin must pass.

    `assay selftest mutants gelu`: every small change to the library's own kernels must be noticed."""
    chosen = {"limit": limit, "sample": sample, "seed": seed, "seconds": proof, "keep": keep}
    settings: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    if what and what[0] == "mutants":
        from assay.cli.mutants import perform

        settings |= {"jobs": jobs} | ({"part": _slice(part)} if part else {})
        settings |= {"operators": _operators(operator)} if operator else {}
        perform(what[1:], settings, json, out, strict)
    if settings or part or operator:
        from assay.errors import UsageError

        raise UsageError("this option is for mutants alone", fix="assay selftest mutants gelu --limit 20")
    _corpus(what, jobs, json, out, strict)


def _corpus(what: list[str] | None, jobs: int | None, json: bool, out: Path | None, strict: bool) -> None:
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


def _slice(text: str) -> tuple[int, int]:
    """`2/5` → (2, 5)."""
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


def _line(record: Record, width: int) -> str:
    from rich.markup import escape

    from assay.selftest.evidence import SelftestEvidence

    evidence = SelftestEvidence.of(record)
    seen = f"caught by [bold]{evidence.caught_by}[/], twin {evidence.twin}"
    caught = seen if str(record.status) == "pass" else escape(record.reason)
    what = escape(evidence.entry)
    return f"{record.kernel:<{width}}  {screen.status_text(record.status)}  {caught}  [dim]{what}[/]"
