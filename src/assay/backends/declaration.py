"""Finds how a CUDA source declares a kernel's parameters, so that messages can name them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.isa.names import parts

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class Declaration:
    line: int
    """The line of the kernel's name."""
    parameters: tuple[str, ...]
    """As written: `const T* x`."""


def find(source: str, instance: str, count: int) -> Declaration | None:
    """Return the declaration of a kernel with `count` parameters. None if the text has no such declaration, for
    instance because a macro writes it, or several that differ."""
    name = instance.partition("<")[0].rpartition("::")[2].strip()
    code = _COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), source)
    found = dict[tuple[str, ...], int]()
    for match in re.finditer(rf"\b__global__\b[^;{{}}]*?\b(?P<name>{re.escape(name)})\s*\(", code):
        written = parts(_enclosed(code, match.end()))
        if written is not None and len(written) == count:
            line = code.count("\n", 0, match.start("name")) + 1
            found.setdefault(tuple(" ".join(p.split()) for p in written), line)
    if len(found) != 1:
        return None
    ((parameters, line),) = found.items()
    return Declaration(line, parameters)


def _enclosed(code: str, start: int) -> str:
    """Return the text from `start` to the parenthesis that closes the one before it."""
    depth = 1
    for at in range(start, len(code)):
        depth += (code[at] == "(") - (code[at] == ")")
        if depth == 0:
            return code[start:at]
    return ""
