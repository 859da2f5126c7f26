"""A Python source as text and as a syntax tree, helpers for its operators, and the part of it that one kernel
reaches."""

import ast
from bisect import bisect_right
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TypeGuard

from assay import syntax
from assay.kernel import Kernel

_Definition = ast.FunctionDef | ast.Assign | ast.expr


@dataclass(frozen=True)
class Change:
    """The replacement of a piece of a source; positions are in bytes of its UTF-8 encoding."""

    operator: str
    start: int
    end: int
    text: str
    constants: tuple[int, ...] = ()
    """The integer that it changes, before and after: sizes around them should be tried."""
    hidden: bool = False
    """Whether it may change what the outputs need not show: which elements are read, or which threads wait for
    which."""
    prelude: str = ""
    """Imports that the new text needs, inserted before the first import statement."""


@dataclass(frozen=True)
class Region:
    """A function or a top-level constant that a kernel reaches."""

    node: _Definition
    device: bool
    """Whether the kernel's language compiles it; otherwise it is host code that prepares and launches."""
    dead: frozenset[ast.AST] = frozenset()
    """Branches that the kernel's literal arguments disable."""


class Source:
    """The text of one file. Lines and columns count from 1."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.data = file.read_bytes()
        self.tree = syntax.module(self.data)
        self._lines = [0, *accumulate(map(len, self.data.splitlines(keepends=True)))]
        """The byte offset of each line."""

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._lines[node.lineno - 1] + node.col_offset, self._lines[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        start, end = self.span(node)
        return self.data[start:end].decode()

    def place(self, position: int) -> tuple[int, int]:
        """Return line and column of a byte offset."""
        line = bisect_right(self._lines, position)
        return line, len(self.data[self._lines[line - 1] : position].decode()) + 1

    def change(self, node: ast.expr | ast.stmt | ast.keyword, operator: str, text: str, prelude: str = "") -> Change:
        """Return the change that replaces a node."""
        return Change(operator, *self.span(node), text, prelude=prelude)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes that contain a node, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def between(self, left: ast.expr, right: ast.expr, symbol: str) -> tuple[int, int] | None:
        """Return the span of an operator's symbol between its operands, outside comments."""
        at, end = self.span(left)[1], self.span(right)[0]
        wanted = symbol.encode()
        while at < end:
            if self.data[at : at + 1] == b"#":
                at = self.data.index(b"\n", at)
            elif self.data.startswith(wanted, at):
                return at, at + len(wanted)
            at += 1
        return None

    def changed(self, change: Change) -> bytes:
        """Return the whole source after a change, with the same number of lines."""
        data = self.data[: change.start] + change.text.encode() + self.data[change.end :]
        if not change.prelude:
            return data
        first = next(n for n in self.tree.body if isinstance(n, ast.Import | ast.ImportFrom))
        at = self.span(first)[0]
        return data[:at] + f"{change.prelude}; ".encode() + data[at:]


def calls(node: ast.AST, names: Container[str], *modules: str) -> TypeGuard[ast.Call]:
    """Return whether a node calls one of these names as a function of one of these modules."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in names
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in modules
    )


@dataclass
class _Call:
    """The literal arguments that a function is known to be called with."""

    literals: dict[str, object] = field(default_factory=dict)
    varying: set[str] = field(default_factory=set)


def regions(source: Source, kernel: Kernel) -> list[Region]:
    """Return the code of the file that `kernel` reaches, in the order of the file. Declarations are left out:
    decorators, docstrings and the defaults of tunables are not part of what is computed."""
    binds: dict[str, _Definition] = {}
    for statement in source.tree.body:
        if isinstance(statement, ast.FunctionDef):
            binds[statement.name] = statement
        elif isinstance(statement, ast.Assign):
            binds |= _bound(statement)
    known: dict[str, _Call] = {kernel.function: _Call()}
    reached: dict[_Definition, frozenset[ast.AST]] = {}
    todo = [kernel.function]
    while todo:
        name = todo.pop(0)
        node = binds.get(name)
        if node is None:
            continue
        dead = frozenset(_dead(node, known[name].literals)) if isinstance(node, ast.FunctionDef) else frozenset()
        if reached.get(node) == dead:
            continue
        reached[node] = dead
        live = [n for n in _live(node, dead) if n is not node]
        for call in (n for n in live if isinstance(n, ast.Call)):
            _learn(call, binds, known, known[name].literals)
        for n in live:
            if isinstance(n, ast.Name) and n.id in binds and n.id != name:
                known.setdefault(n.id, _Call())
                todo.append(n.id)
    jitted = _jitted(source.tree)
    return [
        Region(node, isinstance(node, ast.FunctionDef) and node.name in jitted, dead)
        for node, dead in sorted(reached.items(), key=lambda item: item[0].lineno)
    ]


def _bound(statement: ast.Assign) -> dict[str, _Definition]:
    """Return the names that an assignment binds; in `a, b = f(x), g(y)` each with its own value."""
    target = statement.targets[0]
    if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
        pairs = zip(target.elts, statement.value.elts, strict=False)
        return {t.id: value for t, value in pairs if isinstance(t, ast.Name)}
    return {n.id: statement for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)}


def _live(node: ast.AST, dead: frozenset[ast.AST]) -> Iterator[ast.AST]:
    """Yield a definition and all nodes in it, except dead branches, decorators, defaults and annotations."""
    yield node
    children: Iterator[ast.AST] | list[ast.stmt] = ast.iter_child_nodes(node)
    if isinstance(node, ast.FunctionDef):
        children = node.body
    for child in children:
        if child not in dead:
            yield from _live(child, dead)


def live(region: Region) -> Iterator[ast.AST]:
    """Yield the nodes of a region that may be changed: all except docstrings."""
    for node in _live(region.node, region.dead):
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield node


def _learn(call: ast.Call, binds: dict[str, _Definition], calls: dict[str, _Call], literals: dict[str, object]) -> None:
    """Record the literals that a call or a launch `f[grid](…)` passes to a function of this file."""
    target = call.func.value if isinstance(call.func, ast.Subscript) else call.func
    if not isinstance(target, ast.Name) or not isinstance(node := binds.get(target.id), ast.FunctionDef):
        return
    noted = calls.setdefault(target.id, _Call())
    names = [a.arg for a in node.args.args]
    given = [*zip(names, call.args, strict=False), *((k.arg, k.value) for k in call.keywords if k.arg)]
    for name, value in given:
        literal: object = None
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            literal = value.value
        elif isinstance(value, ast.Name) and value.id in literals:
            literal = literals[value.id]
        if literal is None or noted.literals.get(name, literal) != literal:
            noted.varying.add(name)
        else:
            noted.literals[name] = literal
    for name in noted.varying:
        noted.literals.pop(name, None)


def _dead(function: ast.FunctionDef, known: dict[str, object]) -> Iterator[ast.AST]:
    """Yield the statements that `if NAME:` skips, where NAME is a parameter with a known value, and those after a
    branch that returns."""
    for node in ast.walk(function):
        for body in (getattr(node, name, []) for name in ("body", "orelse")):
            ended = False
            for statement in body if isinstance(body, list) else []:
                if ended:
                    yield statement
                elif isinstance(statement, ast.If) and isinstance(statement.test, ast.Name):
                    if (value := known.get(statement.test.id)) is None:
                        continue
                    taken, left = (statement.body, statement.orelse) if value else (statement.orelse, statement.body)
                    yield from left
                    ended = bool(taken) and isinstance(taken[-1], ast.Return)


def _jitted(tree: ast.Module) -> set[str]:
    """Return the functions that a language compiles: decorated with something named jit, or passed to it by name."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(d) for d in node.decorator_list):
            names.add(node.name)
        if isinstance(node, ast.Call) and "jit" in ast.unparse(node.func):
            names |= {a.id for a in node.args if isinstance(a, ast.Name)}
    return names
