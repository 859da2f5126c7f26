"""Splits a table that is wider than the terminal into several, one below another, instead of cutting off figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Column, Table

_NARROWEST = 24
"""The narrowest width, in columns, at which sentences are easy to read."""


@dataclass(frozen=True)
class Repeating:
    """A table whose first columns identify a row, so that each part of the table repeats them."""

    table: Table
    columns: int

    def __rich__(self) -> Table:
        return self.table


def fitted(table: Table, width: int, keep: int) -> list[Table]:
    """Split a table into parts that fit the width. Each has the first `keep` columns, which identify a row, and as many
    of the others as fit. Columns that may wrap do so between words."""
    gap = 1 if table.collapse_padding else 2
    needed = {id(c): _needed(c) for c in table.columns}

    def total(columns: list[Column]) -> int:
        return sum(needed[id(c)] + gap for c in columns) - gap

    first, rest = table.columns[:keep], table.columns[keep:]
    groups: list[list[Column]] = [[]]
    for column in rest:
        if groups[-1] and total([*first, *groups[-1], column]) > width:
            groups.append([])
        groups[-1].append(column)
    parts = []
    for number, group in enumerate(groups):
        columns = [*first, *group]
        widths = _widths(columns, [needed[id(c)] for c in columns], width - total(columns))
        parts.append(_of(table, columns, widths, gap, titled=not number))
    return parts


def _widths(columns: list[Column], needed: list[int], room: int) -> list[int]:
    """Return the needed widths, with the remaining room given to columns that would wrap."""
    widths, full = list(needed), [_width(c) for c in columns]
    while room > 0 and (wrapping := [i for i, w in enumerate(widths) if w < full[i]]):
        for i in wrapping[:room]:
            more = min(full[i] - widths[i], max(1, room // len(wrapping)))
            widths[i] += more
            room -= more
    return widths


def _needed(column: Column) -> int:
    """Return the width at which no word is broken and, in columns that may not wrap, no line."""
    full = _width(column)
    if column.no_wrap:
        return full
    words = max((len(word) for line in _lines(column) for word in line.split()), default=0)
    return min(full, max(words, _NARROWEST, column.min_width or 0))


def _width(column: Column) -> int:
    from rich.cells import cell_len

    return max([cell_len(line) for line in _lines(column)] + [column.min_width or 0, 1])


def _lines(column: Column) -> list[str]:
    from rich.text import Text

    texts = [column.header, *column.cells]
    made = (Text.from_markup(t) if isinstance(t, str) else t if isinstance(t, Text) else Text(str(t)) for t in texts)
    return [line for text in made for line in text.plain.split("\n")]


def _of(table: Table, columns: list[Column], widths: list[int], gap: int, titled: bool) -> Table:
    from rich.table import Table

    made = Table(
        title=table.title if titled else None,
        title_justify=table.title_justify,
        title_style=table.title_style,
        box=table.box,
        pad_edge=table.pad_edge,
        collapse_padding=table.collapse_padding,
        header_style=table.header_style,
        show_header=table.show_header,
        width=sum(widths) + gap * (len(widths) - 1),
    )
    for column, width in zip(columns, widths, strict=True):
        made.add_column(column.header, justify=column.justify, style=column.style, no_wrap=column.no_wrap, width=width)
    for cells, row in zip(zip(*(c.cells for c in columns), strict=True), table.rows, strict=True):
        made.add_row(*cells, style=row.style, end_section=row.end_section)
    return made
