"""Finds the kernels that a CUDA source declares, and their parameters, so that messages can name them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.isa.names import parts

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_KERNEL = re.compile(
    r"(?:\btemplate\s*<(?P<template>[^;{}]*)>\s*)?(?:extern\s*\"C\"\s*|static\s+|inline\s+)*"
    r"__global__\b[^;{}]*?\bvoid\s+(?:__\w+__\s*\([^()]*\)\s*)*(?P<name>\w+)\s*\("
)


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
    code = _without_comments(source)
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


@dataclass(frozen=True)
class Named:
    name: str
    template: str
    """Its template parameters, as written: `typename T, int N`."""
    line: int

    def __str__(self) -> str:
        return f"template <{self.template}> {self.name}" if self.template else self.name


def kernels(source: str) -> list[Named]:
    """Return the kernels that a text declares, apart from those that a macro writes."""
    code = _without_comments(source)
    found: dict[str, Named] = {}
    for match in _KERNEL.finditer(code):
        template = " ".join((match["template"] or "").split())
        found.setdefault(match["name"], Named(match["name"], template, code.count("\n", 0, match.start("name")) + 1))
    return list(found.values())


def _without_comments(source: str) -> str:
    return _COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), source)


def _enclosed(code: str, start: int) -> str:
    """Return the text from `start` to the parenthesis that closes the one before it."""
    depth = 1
    for at in range(start, len(code)):
        depth += (code[at] == "(") - (code[at] == ")")
        if depth == 0:
            return code[start:at]
    return ""
