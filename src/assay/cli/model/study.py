"""Runs a study to its end: a bar while it runs, then its document, its charts, its tables and the exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from assay.cli import check as checking
from assay.cli import screen

if TYPE_CHECKING:
    from assay.record import Record


class Ticked(Protocol):
    def __call__(self, text: str, steps: int | None = None, /) -> None: ...


@dataclass(frozen=True)
class Ending:
    """What the user wants to be done with the records."""

    json: bool
    out: Path | None
    charts: tuple[Path | None, ...]
    strict: bool

    def check(self) -> None:
        """Raise an error for charts that cannot be written, before the study runs for hours."""
        from assay.report.pictures import check

        check(*self.charts)


def finish(
    study: str,
    start: Callable[[Ticked], Iterator[Record]],
    total: int,
    ending: Ending,
    *,
    run: str,
    show: Callable[[list[Record], Any], None],
    report: Callable[[list[Record], bool, Path | None], None] = checking.report,
    title: str = "",
    figure: str = "",
) -> NoReturn:
    """Run a study and exit. `start` gets a callback to be called with each step, and with the number of finished steps
    if that is not the number of records. `report` prints what comes after the tables. The bar's `title` and the
    report's `figure` default to the name of the study."""
    about: dict[str, Any] = {"verb": "model", "study": study, "run": run}
    out = ending.out
    done: list[Record] = []

    def save(kept: list[Record]) -> None:
        if out:
            screen.write_document(kept, out, **about, interrupted=True)

    with screen.progress(total, title or study, ending.json, late=True) as tick:

        def ticked(text: str, steps: int | None = None) -> None:
            tick(text, len(done) if steps is None else steps)

        records, interrupted = screen.drain(start(ticked), done, None, save)
    if out:
        screen.write_document(records, out, **about, interrupted=interrupted)
    pictures = draw(figure or study, records, *ending.charts)
    if ending.json:
        screen.write_document(records, **about, interrupted=interrupted)
    else:
        show(records, screen.console())
        report(records, interrupted, out)
        for file in pictures:
            screen.console().print(f"chart: {file}", soft_wrap=True)
    sys.exit(screen.exit_code(records, ending.strict, interrupted))


def draw(name: str, records: list[Record], *files: Path | None) -> list[Path]:
    """Draw the report's figure of that name into each file, and return the files; a page has the tables too."""
    wanted = [file for file in files if file]
    if not wanted:
        return []
    from assay.report import report
    from assay.report.charts import FIGURES
    from assay.report.pictures import save

    figure = next(f for f in FIGURES if f.name == name)
    pages = [report(records, file, title=figure.title) for file in wanted if file.suffix == ".html"]
    return pages + [written for file in wanted if file.suffix != ".html" for written in save(figure, records, file)]
