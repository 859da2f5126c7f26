"""A table that is wider than the terminal, as several below each other: cut-off figures help nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Column, Table


def fitted(table: Table, width: int, keep: int) -> list[Table]:
    """Each with the first `keep` columns, which say what a row is, and with as many of the others as fit."""
    first, rest = table.columns[:keep], table.columns[keep:]
    gap = 1 if table.collapse_padding else 2
    taken = sum(_width(c) + gap for c in first)
    groups: list[list[Column]] = [[]]
    room = width - taken
    for column in rest:
        if groups[-1] and sum(_width(c) + gap for c in (*groups[-1], column)) - gap > room:
            groups.append([])
        groups[-1].append(column)
    return [table] if len(groups) == 1 else [_of(table, [*first, *g], not n) for n, g in enumerate(groups)]


def _width(column: Column) -> int:
    from rich.text import Text

    texts = [column.header, *column.cells]
    lines = [line for t in texts for line in (Text.from_markup(t) if isinstance(t, str) else Text(str(t))).split()]
    return max([line.cell_len for line in lines] + [column.min_width or 0])


def _of(table: Table, columns: list[Column], titled: bool) -> Table:
    from rich.table import Table

    made = Table(
        title=table.title if titled else None,
        title_justify=table.title_justify,
        title_style=table.title_style,
        box=table.box,
        pad_edge=table.pad_edge,
        collapse_padding=table.collapse_padding,
        header_style=table.header_style,
    )
    for c in columns:
        made.add_column(c.header, justify=c.justify, no_wrap=c.no_wrap, overflow=c.overflow, min_width=c.min_width)
    for cells, row in zip(zip(*(c.cells for c in columns), strict=True), table.rows, strict=True):
        made.add_row(*cells, end_section=row.end_section)
    return made
