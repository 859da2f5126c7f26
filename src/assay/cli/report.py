"""`assay report`: one page with all results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay import units
from assay.cli import screen

if TYPE_CHECKING:
    from assay.record import Record

Out = Annotated[Path, typer.Option("--out", help="Where to write the page.")]
Named = Annotated[list[Path] | None, typer.Argument(help="Documents of records that --out wrote. None: the store.")]
Documents = Annotated[list[Path] | None, typer.Option("--from", help="The same; may be repeated.")]
Run = Annotated[str, typer.Option("--run", help="Only this run: its id, the beginning of it, or `last`.")]
Pictures = Annotated[Path | None, typer.Option("--pictures", help="Also every chart as SVG and PNG, into this folder.")]
Title = Annotated[str, typer.Option("--title", help="Above the page.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print what was written as one JSON document, nothing else.")]
Store = Annotated[str | None, typer.Option("--store", help="A store other than the default: a file or a URL.")]


def report(
    named: Named = None,
    out: Out = Path("assay-report.html"),
    documents: Documents = None,
    run: Run = "",
    pictures: Pictures = None,
    title: Title = "Assay report",
    json: AsJson = False,
    store: Store = None,
) -> None:
    """One page that needs nothing else: verdicts, times, limits, the machine, and how each came about."""
    from assay.errors import UsageError
    from assay.report import report as write
    from assay.report.pictures import draw
    from assay.report.removed import separated
    from assay.report.rows import latest

    paths = [*(named or ()), *(documents or ())]
    records = read_documents(paths, run) if paths else _store(store, run)
    if not records:
        what = f"no records of run {run}" if run else "no records to report on"
        raise UsageError(
            what, fix="run `assay check` or `assay bench` first" + " (`assay history` lists runs)" * bool(run)
        )
    # A document, or one run, stands for what was there then.
    records, removed = (records, []) if paths or run else separated(records)
    page, today = write(records, out, title=title, removed=removed), latest(records)
    drawn = draw(today, pictures) if pictures else []
    if json:
        import json as notation

        summary = {"page": str(page), "pictures": [str(p) for p in drawn], "records": len(records)}
        summary |= {"removed": len(removed)} if removed else {}
        print(notation.dumps(summary, indent=1))
        return
    terminal = screen.console()
    older = f" ({len(records) - len(today)} earlier ones are superseded)" if len(today) < len(records) else ""
    counts = f": {screen.summary(today)}" if today else ""
    terminal.print(f"{units.count(len(today), 'record')}{counts}{older}", soft_wrap=True)
    if removed:
        count = units.count(len(removed), "record")
        terminal.print(f"not counted: {count} of kernels that are no longer in the source", soft_wrap=True)
    terminal.print(f"page: {page}", soft_wrap=True)
    if pictures:
        terminal.print(f"pictures: {len(drawn)} in {pictures}", soft_wrap=True)


def read_documents(paths: list[Path], run: str = "") -> list[Record]:
    """Return the records of all documents, in order. The error for one that cannot be read says which and why."""
    from pydantic import ValidationError

    from assay.errors import UsageError
    from assay.record import read

    records = []
    for path in paths:
        try:
            records += read(path)
        except OSError as problem:
            raise UsageError(f"cannot read {path}: {problem.strerror}", fix="name a file written with --out") from None
        except (ValueError, KeyError, TypeError, ValidationError):
            raise UsageError(
                f"{path} is not a document of records", fix="name a file written with --out or from --json"
            ) from None
    if run == "last":  # ids sort by time
        run = max((r.run for r in records), default="")
    return [r for r in records if r.run.startswith(run)]


def _store(where: str | None, run: str) -> list[Record]:
    """Return the records of the current state, or all of one run."""
    from assay.store import open_store

    # Reading a store that was named and does not exist must not create it.
    with open_store(where, create=where is None) as store:
        return list(store.records(run=store.run(run)) if run else store.records(latest=True))
