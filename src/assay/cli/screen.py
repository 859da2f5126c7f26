"""Output that all verbs share: the JSON document, tables, progress, errors, exit codes."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli import keeping, session
from assay.cli.bar import progress
from assay.cli.guides import located
from assay.cli.terminal import console, on_terminal, wrapped
from assay.errors import AssayError
from assay.watching import left, strike

if TYPE_CHECKING:
    from assay.record import Record
    from assay.report.table import Note, Table

__all__ = [
    "MARKS",
    "collect",
    "console",
    "drain",
    "error",
    "exit_code",
    "on_terminal",
    "print_parts",
    "progress",
    "status_text",
    "summary",
    "write_document",
]
MARKS = {
    "pass": ("✓", "green"),
    "fail": ("✗", "bold red"),
    "compiled": ("◐", "cyan"),
    "skipped": ("–", "yellow"),
    "inconclusive": ("?", "magenta"),
}


_SAVE_EVERY = 5.0


def error(problem: AssayError) -> None:
    """Print an error to stderr, with what to do about it and without a traceback."""
    text = located(f"assay: {problem}")
    if sys.stderr.isatty():
        from rich.markup import escape

        text = str(wrapped(escape(text), console(stderr=True).width))
    print(text, file=sys.stderr)


def write_document(records: Iterable[Record], where: Path | None = None, **about: Any) -> bool:
    """Write the one document of `--json`, to stdout or a file. Return whether it was written; if not, print why."""
    from assay.record import document

    if session.refused:
        refused = [{"what": p.what, "where": p.where, "fix": p.fix} for p in session.refused]
        about = about | {"refused": refused}
    if where is not None:
        return keeping.document_written(records, where, about)
    session.awaited.pop("json", None)
    sys.stdout.write(json.dumps(document(records, **about), indent=1, default=str) + "\n")
    return True


def collect(
    records: Iterator[Record],
    names: Sequence[str],
    what: str,
    quiet: bool,
    show: Callable[[Record], None] | None = None,
    save: Callable[[list[Record]], None] | None = None,
) -> tuple[list[Record], bool]:
    """Drain a verb under a progress bar. Return the records, and whether the run was interrupted. `names`: the work to
    be done, one name per record: its kernel, or kernel and dtype."""
    kept: list[Record] = []
    waiting = list(names)
    with progress(len(names), what, quiet, left(waiting), mixed=show is not None) as tick:

        def each(record: Record) -> None:
            strike(waiting, record)
            tick(left(waiting), len(kept))
            if show:
                show(record)

        return drain(records, kept, each, save)


def drain(
    records: Iterator[Record],
    kept: list[Record],
    each: Callable[[Record], None] | None = None,
    save: Callable[[list[Record]], None] | None = None,
) -> tuple[list[Record], bool]:
    """Take every record, show it, then keep it in the store. Ctrl-C keeps the finished records; they are also saved
    every few seconds, in case the process is killed without warning."""
    saved = time.monotonic()
    from assay.store import keeper

    with keeper.kept() as keep:
        try:
            with remembered() as asked:
                for record in records:
                    kept.append(record)
                    if each:
                        each(record)
                    keep(record)
                    if save and time.monotonic() > saved + _SAVE_EVERY:
                        with keeping.quietly():
                            save(kept)
                        saved = time.monotonic()
                    if asked:
                        raise KeyboardInterrupt
        except KeyboardInterrupt:
            records.close()  # type: ignore[attr-defined]
            return kept, True
    return kept, False


@contextmanager
def remembered() -> Iterator[list[int]]:
    """Record signals that ask the process to end. Python leaves SIGINT ignored in a shell's background job, and a
    KeyboardInterrupt raised inside a library's callback may be lost; both are noticed here."""
    asked: list[int] = []

    def note(number: int, frame: Any) -> None:
        asked.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def print_parts(parts: Iterable[Table[Any] | Note], terminal: Any) -> None:
    """Print tables as wide as the terminal, and the lines between them."""
    from rich.markup import escape

    from assay.cli.fitted import Repeating
    from assay.report.table import Table, to_rich

    for part in parts:
        if isinstance(part, Table):
            terminal.print(Repeating(to_rich(part), part.keep))
        elif part.loud:
            terminal.print(escape(part.text), soft_wrap=True)
        else:
            terminal.print(part.text, style="dim", markup=False)


def exit_code(records: Iterable[Record], strict: bool, interrupted: bool = False) -> int:
    seen = list(records)
    statuses = [str(r.status) for r in seen]
    bad = "fail" in statuses or (strict and any(s != "pass" for s in statuses))
    refused = any(r.evidence.get("refused") for r in seen)
    return 130 if interrupted else 1 if bad else session.WRONG_USE if refused else 0


def status_text(status: str) -> str:
    mark, colour = MARKS[status]
    return f"[{colour}]{mark} {status}[/]"


def summary(records: list[Record]) -> str:
    """Return the counts by status: `41 pass, 3 compiled, 1 fail`."""
    counts = {s: sum(str(r.status) == s for r in records) for s in MARKS}
    return ", ".join(f"[{MARKS[s][1]}]{n} {s}[/]" for s, n in counts.items() if n)
