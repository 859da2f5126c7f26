"""Maps an instruction back to the line of the intermediate representation that it came from (Triton: TTGIR).

MLIR prints `loc(#loc12)` after an operation and `#loc12 = loc("k.py":7:20)` at the end; the PTX contains the same file,
line and column in its `.loc` directives, and the machine code has its PTX line."""

from __future__ import annotations

import re
from pathlib import PurePath

from assay.isa.ptx import Spot
from assay.isa.sass import Place

_DEFINITION = re.compile(r"^#(\w+) = loc\((.*)\)\s*$")
_USE = re.compile(r"loc\(#(\w+)\)\s*$")
_POSITION = re.compile(r'"([^"]+)":(\d+):(\d+)')
_REFERENCE = re.compile(r"#(\w+)")

_Key = tuple[str, int, int]


class Lines:
    def __init__(self, ir: str) -> None:
        self._by_spot: dict[_Key, int] = {}
        self._by_line: dict[tuple[str, int], int] = {}
        for number, spot in _operations(ir):
            self._by_spot.setdefault(spot, number)
            self._by_line.setdefault(spot[:2], number)

    def of(self, spot: Spot | None, source: Place | None) -> int | None:
        """Return the IR line for a place: by file, line and column if the PTX has them, else by file and line."""
        if spot and (number := self._by_spot.get((PurePath(spot.file).name, spot.line, spot.column))):
            return number
        return self._by_line.get((PurePath(source.file).name, source.line)) if source else None


def _operations(ir: str) -> list[tuple[int, _Key]]:
    """Return every line of the IR that has a source location, with that location."""
    definitions: dict[str, str] = {}
    uses = []
    for number, line in enumerate(ir.splitlines(), 1):
        if definition := _DEFINITION.match(line):
            definitions[definition[1]] = definition[2]
        elif use := _USE.search(line):
            uses.append((number, use[1]))
    return [(number, key) for number, name in uses if (key := _resolved(name, definitions)) is not None]


def _resolved(name: str, definitions: dict[str, str]) -> _Key | None:
    """Return the innermost position: for `callsite(#a at #b)`, the position of #a."""
    for _ in range(64):
        text = definitions.get(name, "")
        if position := _POSITION.search(text):
            return PurePath(position[1]).name, int(position[2]), int(position[3])
        reference = _REFERENCE.search(text)
        if reference is None:
            return None
        name = reference[1]
    return None
