"""Finds the kernels that a CUDA source declares, and their parameters, so that messages can name them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from assay.isa.names import parts

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_KERNEL = re.compile(
    r"(?:\btemplate\s*<(?P<template>[^;{}]*)>\s*)?(?:extern\s*\"C\"\s*|static\s+|inline\s+)*"
    r"__global__\b[^;{}]*?\bvoid\s+(?:__\w+__\s*\([^()]*\)\s*)*(?P<name>\w+)\s*\("
)

_WRITTEN = re.compile(
    r"(?:const )?(?P<type>[A-Za-z_][\w:]*(?: (?:int|long|char|short))*)(?: const)?"
    r"(?: ?(?P<pointer>\*) ?(?:const\b ?)?(?:__restrict__\b ?|__restrict\b ?)?| )(?P<name>(?!const\b)[A-Za-z_]\w*)?"
)
"""A parameter by value or a pointer. Anything else, such as an array or a pointer to pointers, is not read."""
_SPELT = {
    "unsigned": "unsigned int",
    "short int": "short",
    "long int": "long",
    "long long int": "long long",
    "half": "__half",
    "half2": "__half2",
    "nv_bfloat16": "__nv_bfloat16",
    "nv_bfloat162": "__nv_bfloat162",
    **{f"{space}int{size}_t": name for space in ("", "cuda::std::") for size, name in ((32, "int"), (64, "long long"))},
}
"""Other spellings of a type, and how a demangler spells it."""


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


def types(declared: Declaration, source: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the types of a declaration's parameters as a demangler spells them, `float const*`. A type that is not
    among the `known`, or that the source itself defines, is empty."""
    code = _without_comments(source)

    def spelt(parameter: str) -> str:
        match = _WRITTEN.fullmatch(parameter)
        if not match:
            return ""
        name = _SPELT.get(match["type"], match["type"])
        if name not in known or any(_defines(code, word) for word in match["type"].split()):
            return ""
        constant = " const" if "const" in re.split(r"\W+", parameter.partition("*")[0]) else ""
        return f"{name}{constant}*" if match["pointer"] else name

    return tuple(spelt(p) for p in declared.parameters)


def _defines(code: str, name: str) -> bool:
    """True if a text may give this name a meaning of its own."""
    word = rf"\b{re.escape(name)}\b"
    return (
        re.search(rf"#\s*define\s+{word}|\b(?:using|struct|class)\s+{word}|\btypedef\b[^;]*{word}\s*;", code)
        is not None
    )


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
