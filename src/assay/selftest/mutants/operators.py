"""Small changes to a kernel written in Python (Triton, Numba CUDA, njit) and to the code that launches it.

Each operator looks at one node of the syntax tree and yields the texts that may stand in its place."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

from assay.selftest.mutants import access, values
from assay.selftest.mutants.nodes import calls
from assay.selftest.mutants.source import Change, Region, Source, live

Operator = Callable[[Source, ast.AST, str], Iterator[Change]]
"""Source, node and language → changes."""

OPERATORS: dict[str, Operator] = {
    "boundary": values.boundary,
    "constant": access.constant,
    "float": values.floating,
    "arithmetic": values.arithmetic,
    "sign": values.sign,
    "mask": access.mask,
    "guard": access.guard,
    "other": access.other,
    "barrier": access.barrier,
    "accumulator": values.accumulator,
    "narrow": values.narrow,
    "term": access.term,
    "swap": values.swap,
    "extreme": values.extreme,
    "epsilon": values.epsilon,
    "cast": values.cast,
    "axis": access.axis,
}
"""By name, in the order in which the mutants of one place come."""


def changes(source: Source, region: Region, language: str) -> Iterator[Change]:
    """Every change that an operator makes in a region."""
    for node in live(region):
        if _in_text(source, node):
            continue
        for operator in OPERATORS.values():
            for change in operator(source, node, language):
                if region.device or not _is_a_choice(change):
                    yield replace(change, hidden=_hidden(source, node, change.operator))


def _hidden(source: Source, node: ast.AST, operator: str) -> bool:
    """Is it a barrier, or does a node say which elements Triton loads: inside a load, or inside what one names as its
    mask?"""
    if operator in ("mask", "barrier"):
        return True
    statement, function = node, node
    while function in source.parents and not isinstance(function, ast.FunctionDef):
        if calls(function, "load", "tl"):
            return operator not in ("other", "narrow")
        statement, function = function if isinstance(function, ast.stmt) else statement, source.parents[function]
    assigned = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return bool(assigned & _masks(function))


@cache
def _masks(function: ast.AST) -> frozenset[str]:
    """The names of which the masks of a function's loads are made."""
    loads = [n for n in ast.walk(function) if isinstance(n, ast.Call) and calls(n, "load", "tl")]
    masks = [k.value for call in loads for k in call.keywords if k.arg == "mask"]
    return frozenset(n.id for m in masks for n in ast.walk(m) if isinstance(n, ast.Name))


def _is_a_choice(change: Change) -> bool:
    """How much work a block gets is the launch's to choose: with 9 for 8 the kernel is as right as before."""
    return change.operator == "constant" and change.constants[0] > 1


def _in_text(source: Source, node: ast.AST) -> bool:
    """Inside an f-string, where Python 3.11 gives no positions."""
    while node in source.parents:
        if isinstance(node, ast.JoinedStr):
            return True
        node = source.parents[node]
    return False
