"""The progress bar: one line that shows the work in progress and disappears at the end."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from assay.cli import terminal
from assay.cli.lines import lines

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Tick = Callable[[str, int], None]
"""Called with a description of the current work and the number of items finished."""
_FREE = 5
"""Columns kept free behind the bar for the terminal's `^C`. If that began another line, the bar could not be erased."""
_ROOM_FOR_A_BAR, _ROOM_FOR_A_LONG_ONE = 60, 100
"""The fewest columns of a terminal for a bar, and for a long one."""


@contextmanager
def progress(
    total: int | None,
    what: str,
    quiet: bool,
    doing: str = "starting",
    mixed: bool = False,
    late: bool = False,
) -> Iterator[Tick]:
    """Show a bar that says `doing` at first. `total`: None if unknown. `mixed`: records go to the same console. `late`:
    the command prints nothing until its end, so without a terminal it prints lines of progress to standard error."""
    screen = None if quiet else _console(mixed)
    if screen is None and late and not quiet:
        with lines(total, what) as tick:
            yield tick
        return
    if screen is None:
        yield lambda text, done: None
        return
    bar = _bar(screen, what, total)
    with bar, terminal.through(screen) if not screen.stderr else nullcontext():
        task = bar.add_task(what, total=total, doing=doing)
        yield lambda text, done: bar.update(task, doing=text, completed=done)


def _console(mixed: bool) -> Console | None:
    """Return the console for a bar: standard output if that is a terminal, so that printing records moves the bar, else
    standard error; None without a terminal. Records in a pipe may end up on the same terminal, where nothing would move
    the bar, so there is none then."""
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
        """A bar that is never wider than the terminal, whatever COLUMNS says: a wrapped line could not be erased."""

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
    """Return the terminal's own width, less what stays free."""
    with suppress(OSError, ValueError, AttributeError):
        columns = os.get_terminal_size(screen.file.fileno()).columns
        return min(columns or screen.width, screen.width) - _FREE
    return screen.width - _FREE
