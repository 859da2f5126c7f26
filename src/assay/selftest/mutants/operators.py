"""Makes small changes to a kernel written in Python (Triton, Numba CUDA, njit) and to the code that launches it.

Each operator takes one node of the syntax tree and yields texts to replace it with."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

from assay.selftest.mutants import access, values
from assay.selftest.mutants.source import Change, Region, Source, calls, live

Operator = Callable[[Source, ast.AST, str], Iterator[Change]]
"""Takes source, node and language; yields changes."""

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
"""The operators by name, in the order of the mutants at one place."""


def changes(source: Source, region: Region, language: str) -> Iterator[Change]:
    """Yield every change that an operator makes in a region."""
    for node in live(region):
        # Python 3.11 gives no positions inside an f-string.
        if any(isinstance(n, ast.JoinedStr) for n in (node, *source.above(node))):
            continue
        for operator in OPERATORS.values():
            for change in operator(source, node, language):
                # The launch chooses how much work a block gets: with 9 instead of 8 the kernel is still correct.
                choice = change.operator == "constant" and change.constants[0] > 1
                if region.device or not choice:
                    yield replace(change, hidden=_hidden(source, node, change.operator))


def _hidden(source: Source, node: ast.AST, operator: str) -> bool:
    """Return whether a change may be invisible in the outputs: at a barrier, inside a Triton load, or in the
    computation of a load's mask."""
    if operator in ("mask", "barrier"):
        return True
    statement, function = node, node
    while function in source.parents and not isinstance(function, ast.FunctionDef):
        if calls(function, ("load",), "tl"):
            return operator not in ("other", "narrow")
        statement, function = function if isinstance(function, ast.stmt) else statement, source.parents[function]
    assigned = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return bool(assigned & _masks(function))


@cache
def _masks(function: ast.AST) -> frozenset[str]:
    """Return the names that the masks of a function's loads are computed from."""
    loads = [n for n in ast.walk(function) if calls(n, ("load",), "tl")]
    masks = [k.value for call in loads for k in call.keywords if k.arg == "mask"]
    return frozenset(n.id for m in masks for n in ast.walk(m) if isinstance(n, ast.Name))
