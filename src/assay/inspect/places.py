"""Where in the source a line of PTX is from: file, line and column of the `.loc` in effect, and the chain of inlining.

LLVM writes that chain only into the comment behind a `.loc`; of Triton's code the machine code knows no more."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]+)"')
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*?//(.*))?")
_CALLER = re.compile(r"@\[ ([^\s:]+):(\d+):\d+")


@dataclass(frozen=True)
class Spot:
    file: str
    line: int
    column: int
    chain: tuple[tuple[str, int], ...] = ()
    """Where that was inlined, innermost caller first."""


def places(ptx: str) -> list[Spot | None]:
    """Line by line, the place in effect."""
    lines = ptx.splitlines()
    files = {found[1]: found[2] for line in lines if (found := _FILE.match(line))}
    whole = {PurePath(path).name: path for path in files.values()}
    here: Spot | None = None
    result: list[Spot | None] = []
    for line in lines:
        if loc := _LOC.match(line):
            callers = _CALLER.findall(loc[4] or "")
            chain = tuple((whole.get(name, name), int(number)) for name, number in callers)
            here = Spot(files.get(loc[1], ""), int(loc[2]), int(loc[3]), chain)
        result.append(here)
    return result
