"""`assay model fetch`: bring data sets and weights to this machine, verified."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from assay.cli import options as common
from assay.cli import screen

Names = Annotated[list[str] | None, typer.Argument(help="mnist, imdb, minilm, …; default: all but imdb-official.")]


def fetch(names: Names = None, json: common.AsJson = False, out: common.Out = None) -> None:
    """Fetch data sets and published weights, or verify those that are here."""
    from assay import provenance
    from assay.models.subject.data.fetch import USUAL
    from assay.models.subject.data.fetch import fetch as bring

    run = provenance.new_run()
    about: dict[str, Any] = {"verb": "model", "run": run}
    tell = (lambda text: None) if json else (lambda text: print(text, file=sys.stderr))
    wanted = list(names or USUAL)
    records, interrupted = screen.collect(bring(*(names or ()), run=run, tell=tell), wanted, "fetch", json)
    if out:
        screen.write_document(records, out, **about, interrupted=interrupted)
    if json:
        screen.write_document(records, **about, interrupted=interrupted)
    else:
        from rich.markup import escape

        terminal = screen.console()
        for record in records:
            text = f"{screen.status_text(str(record.status))}  {record.kernel}: {escape(record.reason)}"
            terminal.print(text, soft_wrap=True)
    sys.exit(screen.exit_code(records, False, interrupted))
