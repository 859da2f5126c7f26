"""The constraint of a space of tunables: `fits="BLOCK >= 32 * num_warps"`. It is text, so that it can be read without
running the kernel's file, and an expression over numbers, so that evaluating it can do nothing else."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from assay import syntax
from assay.errors import SourceError

CORES = "cores"
"""The number of processor cores that a kernel may use."""
ITEMSIZE = "itemsize"
"""Bytes of an element of the workload's dtype."""
OFFERED = (CORES, ITEMSIZE)
"""Names that a constraint may use besides tunables, axes and attributes."""
_FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "abs": abs}
_EXAMPLE = 'fits="BLOCK >= 32 * num_warps"'
_ALLOWED = (
    ast.BoolOp,
    ast.boolop,
    ast.BinOp,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.FloorDiv,
    ast.Mod,
    ast.UnaryOp,
    ast.unaryop,
    ast.Compare,
    ast.cmpop,
    ast.IfExp,
    ast.Name,
    ast.Load,
    ast.Constant,
    ast.Tuple,
    ast.List,
    ast.Call,
)
"""No power and no shift: a constraint must not be able to take hours."""


@dataclass(frozen=True)
class Constraint:
    """Which configurations belong to a space; an empty text means all of them."""

    text: str = ""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names that the expression uses, in order."""
        if not self.text:
            return ()
        nodes = ast.walk(syntax.expression(self.text))
        return tuple(dict.fromkeys(n.id for n in nodes if isinstance(n, ast.Name) and n.id not in _FUNCTIONS))

    @cached_property
    def _code(self) -> Any:
        return compile(self.text, "<fits>", "eval")

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Return whether a configuration fits. `values`: the tunables, and all else that the expression names."""
        if not self.text:
            return True
        try:
            return bool(eval(self._code, {"__builtins__": {}, **_FUNCTIONS}, dict(values)))
        except (ArithmeticError, TypeError) as problem:
            used = ", ".join(f"{name}={values[name]!r}" for name in self.names if name in values)
            raise SourceError(
                f'fits="{self.text}" cannot be evaluated for {used}: {problem}', fix="make it hold for every choice"
            ) from None


def verify(text: str, where: str) -> None:
    """Raise SourceError for a text that is not an expression over names and numbers."""
    try:
        tree = syntax.expression(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise SourceError(f"fits={text!r} in @kernel is no expression", where=where, fix=f"e.g. {_EXAMPLE}") from None
    for node in ast.walk(tree):
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS
        if not isinstance(node, _ALLOWED) or (isinstance(node, ast.Call) and (not called or node.keywords)):
            raise SourceError(
                f"fits={text!r} in @kernel contains `{ast.unparse(node) or type(node).__name__}`",
                where=where,
                fix=f"use names, numbers, + - * / // %, comparisons, and, or, not, min, max, abs: e.g. {_EXAMPLE}",
            )


def verify_names(text: str, known: Iterable[str], where: str) -> None:
    """Raise SourceError for a constraint over something that neither the kernel nor its op has."""
    known = list(dict.fromkeys((*known, *OFFERED)))
    for name in Constraint(text).names:
        if name not in known:
            raise SourceError(
                f"fits names '{name}', which is no tunable of this kernel and no axis or attribute of its op",
                where=where,
                fix=f"one of: {', '.join(known)}",
            )
