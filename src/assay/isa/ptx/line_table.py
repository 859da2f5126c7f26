"""Line information: the source location of each line of PTX.

LLVM writes the chain of inlining only into the comment after a .loc, so Triton's machine code does not contain it."""

import re
from dataclasses import dataclass
from pathlib import PurePath

from assay.isa.ptx.numbers import literal
from assay.isa.ptx.tokens import split, without_comments

_CALLER = re.compile(r"@\[ ([^\s:]+):([0-9]{1,9}):[0-9]+")
"""`// gelu.py:21:12 @[ kernel.py:7:20 ]`"""


@dataclass(frozen=True)
class Spot:
    file: str
    line: int
    column: int
    chain: tuple[tuple[str, int], ...] = ()
    """File and line of the calls through which it was inlined, innermost first."""


def line_table(text: str) -> list[Spot | None]:
    """Return, for each line of the text, the place named by the last .loc up to it. Any text is accepted, as in
    `scan`."""
    code, _ = without_comments(text)
    lines = [split(line) if ".loc" in line or ".file" in line else [] for line in code.split("\n")]
    files = {tokens[1]: tokens[2][1:-1] for tokens in lines if tokens[:1] == [".file"] and len(tokens) > 2}
    whole = {PurePath(path).name: path for path in files.values()}
    here: Spot | None = None
    spots: list[Spot | None] = []
    for tokens in lines:
        numbers = [n for t in tokens[1:4] if isinstance(n := literal(t), int)]
        if tokens[:1] == [".loc"] and len(numbers) == 3:
            _, line, column = numbers
            chain = tuple((whole.get(name, name), int(caller)) for name, caller in _CALLER.findall(tokens[-1]))
            here = Spot(files.get(tokens[1], ""), line, column, chain)
        spots.append(here)
    return spots
