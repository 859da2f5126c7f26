"""The tokens of a CUDA source, and which of its functions a launch reaches. Comments, strings and directives are no
tokens: nothing is ever changed there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from assay.selftest.mutants.source import Change

_TOKEN = re.compile(
    r"(?P<skip>//[^\n]*|/\*.*?\*/|\s+|^[ \t]*\#(?:[^\n\\]|\\.)*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<number>0[xX][0-9a-fA-F]+[uUlL]*|(?:\d+\.\d*|\.\d+|\d+(?=[eE][+-]?\d))(?:[eE][+-]?\d+)?[fFlL]?|\d+[uUlL]*)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<symbol><<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|->|::|[-+*/%&|^]=|.)",
    re.DOTALL | re.MULTILINE,
)
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")": "(", "]": "[", "}": "{"}
_NO_FUNCTION = ("__launch_bounds__", "__align__", "alignas", "sizeof", "if", "for", "while", "switch", "return")


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int
    """In characters."""

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True)
class Definition:
    name: str
    owner: str
    """The struct of which it is a method; empty: it stands at the top level."""
    start: int
    end: int
    """The braces of its body, as tokens."""
    methods: tuple[Definition, ...] = ()


class CudaSource:
    """The text of a .cu file and its tokens."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.text = file.read_text()
        self.tokens = [
            Token(m.lastgroup or "", m.group(), m.start()) for m in _TOKEN.finditer(self.text) if m.lastgroup != "skip"
        ]

    def place(self, position: int) -> tuple[int, int]:
        """Line and column, from 1, of a byte of the file."""
        before = self.text.encode()[:position].decode()
        return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1

    def changed(self, change: Change) -> bytes:
        data = self.text.encode()
        return data[: change.start] + change.text.encode() + data[change.end :]

    def change(self, operator: str, start: int, end: int, text: str, constants: tuple[int, ...] = ()) -> Change:
        """A change between two characters, told in bytes."""
        at = len(self.text[:start].encode())
        return Change(operator, at, at + len(self.text[start:end].encode()), text, constants)

    @cached_property
    def definitions(self) -> list[Definition]:
        """Functions, structs and the methods of structs."""
        return list(self._defined(0, len(self.tokens), ""))

    def _defined(self, at: int, stop: int, owner: str) -> Iterator[Definition]:
        header = at
        while at < stop:
            text = self.tokens[at].text
            if text == "{":
                end = self.partner(at)
                name, struct = self._named(header, at)
                if name:
                    methods = tuple(self._defined(at + 1, end, name)) if struct else ()
                    yield Definition(name, owner, at, end, methods)
                    yield from methods
                at = header = end + 1
                continue
            if text == "(":
                at = self.partner(at)
            elif text == ";":
                header = at + 1
            at += 1

    def _named(self, header: int, body: int) -> tuple[str, bool]:
        """The name that stands before a body, and whether it is a struct's."""
        words = self.tokens[header:body]
        for i, token in enumerate(words):
            if token.text == "struct" and (i == 0 or words[i - 1].text not in ("<", ",")):
                return words[i + 1].text, True
        named = ""
        for token, following in pairwise(words):
            if token.kind == "name" and following.text == "(" and token.text not in _NO_FUNCTION:
                named = token.text
        return named, False

    def partner(self, at: int) -> int:
        """The token that closes the bracket at `at`, or that opens it."""
        text = self.tokens[at].text
        same, other, step = (text, OPEN[text], 1) if text in OPEN else (text, CLOSE[text], -1)
        depth = 0
        while 0 <= at < len(self.tokens):
            depth += (self.tokens[at].text == same) - (self.tokens[at].text == other)
            if depth == 0:
                return at
            at += step
        return len(self.tokens) - 1

    def reached(self, names: set[str]) -> list[int]:
        """The tokens of the bodies that code naming `names` reaches, in order. Of a struct these are the methods that
        are called and what stands outside methods."""
        words = set(names)
        reached: dict[Definition, list[int]] = {}
        grew = True
        while grew:
            grew = False
            structs = {d.name for d in reached}
            for one in self.definitions:
                if one in reached or one.name not in words or (one.owner and one.owner not in structs):
                    continue
                inner = {t for m in one.methods for t in range(m.start, m.end + 1)}
                mine = [t for t in range(one.start + 1, one.end) if t not in inner]
                methods = {m.name for m in one.methods}
                words |= {self.tokens[t].text for t in mine if self.tokens[t].kind == "name"} - methods
                reached[one] = mine
                grew = True
        return sorted({t for mine in reached.values() for t in mine})
