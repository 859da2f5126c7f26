"""Prints text on a terminal or in a pipe: lines and tables are broken between words and never cut. The width is that of
the terminal, or COLUMNS; a pipe has no width of its own."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from assay.cli.fitted import Repeating, fitted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_UNBOUNDED = 1_000_000
"""Width of a pipe or a file, in columns."""
_under_a_bar: list[Console] = []
"""The console of the progress bar that is on standard output now. It moves the bar out of the way of what it prints;
another one would print over the bar."""


def console(stderr: bool = False) -> Console:
    """Return the console to print on. While a bar is on standard output, this is the bar's own."""
    if _under_a_bar and not stderr:
        return _under_a_bar[-1]
    return new_console(stderr)


def new_console(stderr: bool = False) -> Console:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    class Whole(Console):
        """A console that breaks lines and tables between words. `soft_wrap=True` prints a line as one, however long."""

        def print(self, *objects: Any, **how: Any) -> None:
            if len(objects) == 1 and isinstance(objects[0], Table | Repeating):
                self._draw(objects[0])
            elif how.get("soft_wrap") or not all(isinstance(o, str) for o in objects):
                self._put(*objects, **how)
            else:
                plain = how.get("markup") is False
                texts = [wrapped(escape(o) if plain else o, self.width) for o in objects]
                whole: dict[str, Any] = {"crop": False, "no_wrap": True, "overflow": "ignore"}
                self._put(*texts, **whole | how)

        def _draw(self, what: Table | Repeating) -> None:
            table, keep = (what.table, what.columns) if isinstance(what, Repeating) else (what, 1)
            title, table.title = table.title, None
            if title:  # inside the table it would be broken to the table's width
                self.print(title, style=table.title_style)
            for part in fitted(table, self.width, keep):
                self._put(part, crop=False)

        def _put(self, *objects: Any, **how: Any) -> None:
            if self.is_terminal:
                super().print(*objects, **how)
                return
            with self.capture() as captured:
                super().print(*objects, **how)
            self.file.write("\n".join(line.rstrip() for line in captured.get().split("\n")))
            self.file.flush()

    bounded = on_terminal(stderr) or os.environ.get("COLUMNS", "").isdigit()
    return Whole(stderr=stderr, highlight=False, emoji=False, width=None if bounded else _UNBOUNDED)


def on_terminal(stderr: bool = False) -> bool:
    """Return whether the stream is a terminal. FORCE_COLOR turns on colours, but makes no terminal."""
    stream = sys.stderr if stderr else sys.stdout
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # closed, or none at all
        return False


@contextlib.contextmanager
def through(bar: Console) -> Iterator[None]:
    """While open, `console()` returns `bar` for standard output."""
    _under_a_bar.append(bar)
    try:
        yield
    finally:
        _under_a_bar.remove(bar)


def wrapped(markup: str, width: int) -> Text:
    """Return the text in lines of at most `width` columns; a longer word has a line of its own."""
    from rich.cells import cell_len
    from rich.text import Text

    lines: list[Text] = []
    for line in Text.from_markup(markup, emoji=False).split("\n", allow_blank=True):
        breaks, used = [], 0
        for word in re.finditer(r"^\s*\S*\s*|\S+\s*", line.plain):
            if used and used + cell_len(word[0].rstrip()) > width:
                breaks.append(word.start())
                used = 0
            used += cell_len(word[0])
        lines += line.divide(breaks) if breaks else [line]
    for line in lines:
        line.rstrip()
    return Text("\n").join(lines)
