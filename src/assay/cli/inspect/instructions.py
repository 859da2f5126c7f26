"""The table of instructions in a terminal: one row for each, with the columns that fit beside the instruction."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

from rich.markup import escape
from rich.text import Text

from assay.report.table import Column, Table

Row = dict[str, Any]
"""One instruction: assay.inspect.row as a dictionary."""

_TEXT = "instruction"
_RANKS = ("line", "stall", "live", "wait", "set", "pipe", "ptx")
"""The columns that a narrow terminal may leave out, the most important first. The address and the instruction are
always shown."""
_ON_ONE_LINE = 0.95
"""The share of the instructions for which columns leave enough room. Longer instructions are wrapped in their cell."""
_FOR_LINE = 30
"""The narrowest instruction column beside the source line, which matters more than wrapping."""


def instructions(rows: Sequence[Row], width: int) -> tuple[Table[Row], list[str]]:
    """Return the table for a terminal of this width, and the columns that are left out."""
    columns = _columns(_short_names(r["source_file"] for r in rows if r["source_file"]))
    widths = {c.header: max([len(c.header), *(_width(c, r) for r in rows)]) for c in columns}
    lengths = sorted(len(_indented(r)) for r in rows)
    usual = max(lengths[int(len(lengths) * _ON_ONE_LINE)], len(_TEXT)) if lengths else 0
    shown, room = {"address"}, width - widths["address"] - 1
    for name in _RANKS:
        if widths[name] + 1 + min(usual, _FOR_LINE if name == "line" else usual) <= room:
            shown.add(name)
            room -= widths[name] + 1
    text: Column[Row] = Column(_TEXT, lambda r: escape(_wrapped(r, max(room, len(_TEXT)))), left=True)
    kept = [text if c.header == _TEXT else c for c in columns if c.header in {*shown, _TEXT}]
    return Table("", kept, rows, keep=len(kept)), [c.header for c in columns if c not in kept and c.header != _TEXT]


def _indented(row: Row) -> str:
    """Return the instruction's text, indented by the loops around it."""
    return "  " * row["loop_depth"] + str(row["text"])


def _wrapped(row: Row, width: int) -> str:
    indent = "  " * (row["loop_depth"] + 2)
    return textwrap.fill(_indented(row), width, subsequent_indent=indent, break_on_hyphens=False)


def _columns(files: dict[str, str]) -> list[Column[Row]]:
    def line(row: Row) -> str:
        number = str(row["source_line"] or "")
        file = files.get(row["source_file"] or "", "")
        return escape(f"{file}:{number}") if number and len(files) > 1 else number

    return [
        Column("address", lambda r: f"{r['address']:04x}"),
        Column("stall", lambda r: str(r["stall"])),
        Column("wait", lambda r: "".join(map(str, r["waits"])), left=True),
        Column("set", _barriers, left=True),
        Column("pipe", lambda r: r["pipe"], left=True),
        Column("live", lambda r: "" if r["live_registers"] is None else str(r["live_registers"])),
        Column(_TEXT, lambda r: escape(_indented(r)), left=True),
        Column("line", line),
        Column("ptx", lambda r: str(r["ptx_line"] or "")),
    ]


def _barriers(row: Row) -> str:
    """Return the barriers that an instruction sets when it has written, or read, its registers."""
    sets = [f"w{row['write_barrier']}"] if row["write_barrier"] is not None else []
    sets += [f"r{row['read_barrier']}"] if row["read_barrier"] is not None else []
    return " ".join(sets)


def _short_names(files: Iterable[str]) -> dict[str, str]:
    """Return the shortest end of each file's path that no other file has."""
    paths = {file: PurePath(file).parts for file in dict.fromkeys(files)}
    short = {}
    for file, parts in paths.items():
        others = [p for other, p in paths.items() if other != file]
        count = next((n for n in range(1, len(parts)) if all(p[-n:] != parts[-n:] for p in others)), len(parts))
        short[file] = str(PurePath(*parts[-count:]))
    return short


def _width(column: Column[Row], row: Row) -> int:
    return Text.from_markup(str(column.cell(row))).cell_len
