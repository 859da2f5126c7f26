"""Runs a search to its end: a bar while it runs, then its document or its table, and the exit code."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from assay.cli import check as checking
from assay.cli import screen
from assay.cli.model.study import draw

if TYPE_CHECKING:
    from assay.record import Record
    from assay.search.planning import Plan


Show = Callable[[list["Record"], Any], None]


def finish(
    planned: Plan, json: bool, out: Path | None, charts: tuple[Path | None, ...] = (), show: Show | None = None
) -> NoReturn:
    from assay.report.pictures import check
    from assay.search.verb import run

    check(*charts)

    about: dict[str, Any] = {"verb": "search", "study": planned.kind, "run": planned.options.run}

    def save(kept: list[Record]) -> None:
        if out:
            screen.write_document(kept, out, **about, interrupted=True)

    kept_trials: dict[str, int] = {}
    total = planned.trials * len(planned.studies) if planned.trials else None
    with screen.progress(total, f"search {planned.kind} {planned.entry.name}", json, late=True) as tick:
        records, interrupted = screen.drain(run(planned, tick, resumed=kept_trials.__setitem__), [], None, save)
    pictures = draw("sensitivity" if planned.kind == "sensitivity" else "search", records, *charts)
    if json:
        screen.write_document(records, **about, interrupted=interrupted)
    else:
        terminal = screen.console()
        for line in continued(records, kept_trials):
            terminal.print(line, markup=False, soft_wrap=True)
        (show or best_so_far)(records, terminal)
        for line in without_winner(records, {study.name: study.file for study in planned.studies}):
            terminal.print(line, markup=False, soft_wrap=True)
        checking.report(records, interrupted)
        if interrupted:
            screen.console().print("the study goes on where it stopped when the same command is given again")
        for file in pictures:
            screen.console().print(f"chart: {file}", soft_wrap=True)
    checking.keep(records, out, None, json, **about, interrupted=interrupted)
    sys.exit(screen.exit_code(records, False, interrupted))


def continued(records: list[Record], kept: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each study that continued. `kept`: its number of trials before."""
    from assay.search.evidence import SearchEvidence
    from assay.units import count

    done = Counter(found.name for found in map(SearchEvidence.of, records) if found.role == "trial")
    for name, before in kept.items():
        yield f"continuing study {name}: {count(before, 'trial')} kept, {max(0, done[name] - before)} new"


def without_winner(records: list[Record], files: Mapping[str, Path | None]) -> Iterator[str]:
    """Yield, for each study without a winner, why it has none, its nearest trial, and that no file was written.
    `files`: of the studies, for their winners."""
    from assay.record import Status
    from assay.search.evidence import SearchEvidence

    every = [(record, SearchEvidence.of(record)) for record in records]
    for record, ended in every:
        if ended.role != "winner" or record.status is not Status.INCONCLUSIVE:
            continue
        which = " ".join(filter(None, (ended.mode, ended.format, f"seed {ended.seed}"))) + ": "
        yield f"{which * (len(files) > 1)}no winner: {record.reason}"
        trials = [(r, e) for r, e in every if e.name == ended.name and e.role == "trial" and e.accuracy is not None]
        if trials:
            nearest, found = max(trials, key=lambda trial: (trial[1].accuracy or 0.0, -(trial[1].bits or 0)))
            yield f"the nearest is trial {found.trial}: {nearest.reason}"
        if file := files.get(ended.name):
            yield f"{file}: nothing was saved: no winner"


def best_so_far(records: list[Record], terminal: Any) -> None:
    """Print the control, the trials that were the best so far, and the winners."""
    from rich.table import Table

    from assay.search.evidence import SearchEvidence

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, side in (
        ("", "left"),
        ("study", "left"),
        ("trial", "right"),
        ("seed", "right"),
        ("validation", "right"),
    ):
        table.add_column(column, justify=side)  # type: ignore[arg-type]
    for column in ("points", "test", "bits", "smaller"):
        table.add_column(column, justify="right")
    table.add_column("chosen", overflow="fold")
    everything = [SearchEvidence.of(record) for record in records]
    order = list(dict.fromkeys(found.name for found in everything))
    roles = ("control", "trial", "winner")
    everything.sort(key=lambda found: (order.index(found.name), roles.index(found.role), found.trial or 0))
    for found in everything:
        if found.accuracy is None or (found.role == "trial" and not found.best):
            continue
        control = found.control_accuracy
        smaller = f"{found.control_bits / found.bits:.2f} ×" if found.control_bits and found.bits else ""
        table.add_row(
            "best so far" if found.role == "trial" else found.role,
            " ".join(filter(None, (found.mode, found.format))),
            "" if found.trial is None else str(found.trial),
            str(found.seed),
            f"{found.accuracy:.2%}",
            f"{100 * (found.accuracy - control):+.2f}" if control is not None else "",
            f"{found.test:.2%}" if found.test is not None else "",
            f"{found.bits or 0:,}",
            smaller,
            " ".join(f"{name}={value}" for name, value in found.parameters.items()),
        )
    terminal.print(table)
