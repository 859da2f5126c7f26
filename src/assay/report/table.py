"""Tables defined once, by columns that turn a row into cells, and drawn in a terminal, in Markdown and in HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from rich.table import Table as RichTable

R = TypeVar("R")


@dataclass(frozen=True)
class Cell:
    """A text that differs between a terminal and a page."""

    terminal: str
    """Text with rich's markup."""
    page: str
    """Text in Markdown."""


@dataclass(frozen=True)
class Column(Generic[R]):
    header: str
    """Header in a terminal; if empty, the column is not shown there."""
    cell: Callable[[R], str | Cell]
    page: str | None = None
    """Header on a page; None is the same as in a terminal; if empty, the column is not shown there."""
    left: bool = False
    fold: bool = False
    """Whether a terminal wraps its text."""

    @property
    def on_page(self) -> str:
        return self.header.replace("\n", " ") if self.page is None else self.page


@dataclass(frozen=True)
class Table(Generic[R]):
    title: str
    columns: Sequence[Column[R]]
    rows: Sequence[R]
    keep: int = 1
    """Number of leading columns that identify a row. If a terminal is too narrow, each part of the table repeats
    them."""
    group: Callable[[R], str] | None = None
    """Rows with the same result belong to one group. In a terminal, their first cells end in it, and only the first row
    shows it."""


@dataclass(frozen=True)
class Note:
    """A line between tables."""

    text: str
    loud: bool = False
    """Whether it is a finding of its own: not dimmed, never wrapped."""


def to_rich(table: Table[R]) -> RichTable:
    from rich.table import Table as RichTable

    drawn = RichTable(
        title=table.title or None,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        collapse_padding=True,
    )
    columns = [c for c in table.columns if c.header]
    for column in columns:
        side: Any = "left" if column.left else "right"
        if column.fold:
            drawn.add_column(column.header, justify=side, overflow="fold", min_width=16)
        else:
            drawn.add_column(column.header, justify=side, no_wrap=True)
    before = ""
    for row in table.rows:
        group = table.group(row) if table.group else ""
        first, *rest = (_terminal(column.cell(row)) for column in columns)
        if before and group != before:
            drawn.add_section()
        drawn.add_row(first.removesuffix(group) if group == before else first, *rest)
        before = group
    return drawn


def to_markdown(table: Table[R]) -> list[str]:
    """Return the table's lines, without the title, and an empty one at the end."""
    columns = [c for c in table.columns if c.on_page]
    lines = [_line([c.on_page for c in columns]), "|" + "|".join("---" if c.left else "---:" for c in columns) + "|"]
    return [*lines, *(_line([_page(c.cell(row)) for c in columns]) for row in table.rows), ""]


def to_html(part: Table[R] | Note) -> str:
    if isinstance(part, Note):
        return f'<p class="soft">{html.escape(part.text)}</p>'
    table, columns = part, [c for c in part.columns if c.on_page]
    head = "".join(_html("th", c.on_page, c.left) for c in columns)
    rows = ("".join(_html("td", _page(c.cell(row)), c.left) for c in columns) for row in table.rows)
    body = "".join(f"<tr>{cells}</tr>" for cells in rows)
    title = f"<caption>{html.escape(table.title)}</caption>" if table.title else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _html(tag: str, text: str, left: bool) -> str:
    side = "" if left else ' class="num"'
    bold = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", html.escape(text))
    return f"<{tag}{side}>{bold}</{tag}>"


def _terminal(cell: str | Cell) -> str:
    return cell if isinstance(cell, str) else cell.terminal


def _page(cell: str | Cell) -> str:
    return cell if isinstance(cell, str) else cell.page
