"""Splits a CUDA source into tokens, and finds the functions that a launch reaches. Comments, strings and directives are
not tokens, so nothing is ever changed there."""

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
    """Offset in characters."""

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True)
class Definition:
    name: str
    owner: str
    """The struct if it is a method; empty at the top level."""
    start: int
    end: int
    """Indices of the braces of its body among the tokens."""
    methods: "tuple[Definition, ...]" = ()


class CudaSource:
    """The text of a .cu file and its tokens."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.data = file.read_bytes()
        self.text = self.data.decode(errors="surrogateescape")
        self.tokens = [
            Token(m.lastgroup or "", m.group(), m.start()) for m in _TOKEN.finditer(self.text) if m.lastgroup != "skip"
        ]

    def place(self, position: int) -> tuple[int, int]:
        """Return line and column, from 1, of a byte offset in the file."""
        before = self.data[:position].decode(errors="surrogateescape")
        return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1

    def changed(self, change: Change) -> bytes:
        """Return the whole source after a change."""
        return self.data[: change.start] + change.text.encode() + self.data[change.end :]

    def change(self, operator: str, start: int, end: int, text: str, constants: tuple[int, ...] = ()) -> Change:
        """Return the change of the text between two character offsets."""
        at = len(self.text[:start].encode(errors="surrogateescape"))
        return Change(operator, at, at + len(self.text[start:end].encode(errors="surrogateescape")), text, constants)

    @cached_property
    def definitions(self) -> list[Definition]:
        """All functions, structs and methods of structs."""
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
        """Return the name before a body, and whether it is a struct's name."""
        words = self.tokens[header:body]
        for i, token in enumerate(words):
            if token.text == "struct" and (i == 0 or words[i - 1].text not in ("<", ",")):
                return words[i + 1].text, True
        depth, name = 0, ""
        for token, following in pairwise(words):
            # A parameter may be a reference to an array: `float (&v)[N]`.
            if depth == 0 and token.kind == "name" and following.text == "(" and token.text not in _NO_FUNCTION:
                name = token.text
            depth += (token.text == "(") - (token.text == ")")
        return name, False

    def partner(self, at: int) -> int:
        """Return the index of the matching bracket of the one at `at`."""
        same = self.tokens[at].text
        other, places = (OPEN[same], range(at, len(self.tokens))) if same in OPEN else (CLOSE[same], range(at, -1, -1))
        depth = 0
        for place in places:
            depth += (self.tokens[place].text == same) - (self.tokens[place].text == other)
            if depth == 0:
                return place
        return len(self.tokens) - 1

    def reached(self, names: set[str]) -> list[int]:
        """Return, in order, the tokens of the bodies that code naming `names` reaches. For a struct these are the
        methods that are called and the tokens outside methods."""
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
                own = [t for t in range(one.start + 1, one.end) if t not in inner]
                methods = {m.name for m in one.methods}
                words |= {self.tokens[t].text for t in own if self.tokens[t].kind == "name"} - methods
                reached[one] = own
                grew = True
        return sorted({t for own in reached.values() for t in own})
