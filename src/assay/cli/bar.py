"""The progress bar: one line that says what is being done, gone when it is done."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from assay.cli import terminal

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Tick = Callable[[str, int], None]
"""Called with what is being done and how much is finished."""
_FREE = 5
"""Columns behind the bar. The terminal shows `^C` there: if that began another line, the bar could not be erased."""
_ROOM_FOR_A_BAR, _ROOM_FOR_A_LONG_ONE = 60, 100
"""Columns."""


@contextmanager
def progress(total: int | None, what: str, quiet: bool, doing: str = "starting", mixed: bool = False) -> Iterator[Tick]:
    """A bar that says `doing` at first. `total`: None where it is not known. `mixed`: records are printed meanwhile, on
    the same console."""
    screen = None if quiet else _console(mixed)
    if screen is None:
        yield lambda text, done: None
        return
    bar = _bar(screen, what, total)
    with bar, terminal.through(screen) if not screen.stderr else nullcontext():
        task = bar.add_task(what, total=total, doing=doing)
        yield lambda text, done: bar.update(task, doing=text, completed=done)


def _console(mixed: bool) -> Console | None:
    """Where a bar can be: on standard output where that is a terminal, so that records make it move out of their way;
    else on standard error. Records that go through a pipe may come out on the same terminal, where nothing would
    move: no bar then."""
    shown = terminal.on_terminal()
    if not shown and (not terminal.on_terminal(stderr=True) or (mixed and _piped())):
        return None
    screen = terminal.new_console(stderr=not shown)
    return None if screen.is_dumb_terminal else screen


def _piped() -> bool:
    with suppress(OSError, ValueError, AttributeError):
        return stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    return False


def _bar(screen: Console, what: str, total: int | None) -> Any:
    from rich.constrain import Constrain
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    width = _columns(screen)

    class OneLine(Progress):
        """Never wider than the terminal itself, whatever COLUMNS says: a wrapped line could not be taken back."""

        def get_renderable(self) -> RenderableType:
            return Constrain(super().get_renderable(), width)

    columns: list[Any] = [TextColumn(escape(what), table_column=Column(no_wrap=True))]
    if width >= _ROOM_FOR_A_BAR:
        columns.append(BarColumn(40 if width >= _ROOM_FOR_A_LONG_ONE else 16))
    if total:
        columns.append(MofNCompleteColumn(table_column=Column(no_wrap=True)))
    columns.append(TimeElapsedColumn(table_column=Column(no_wrap=True)))
    columns.append(
        TextColumn("{task.fields[doing]}", style="dim", markup=False, table_column=Column(no_wrap=True, ratio=1))
    )
    return OneLine(
        *columns,
        console=screen,
        transient=True,
        expand=True,
        redirect_stdout=terminal.on_terminal(),
        redirect_stderr=terminal.on_terminal(stderr=True),
    )


def _columns(screen: Console) -> int:
    """The terminal's own width, less what stays free."""
    with suppress(OSError, ValueError, AttributeError):
        columns = os.get_terminal_size(screen.file.fileno()).columns
        return min(columns or screen.width, screen.width) - _FREE
    return screen.width - _FREE
