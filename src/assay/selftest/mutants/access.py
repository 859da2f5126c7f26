"""Mutations of which elements a Python kernel accesses, and when: indices, masks, guards, axes, barriers."""

import ast
from collections.abc import Iterator

from assay.selftest.mutants.source import Change, Source, calls
from assay.syntax import last_name

_AXIS_CALLS = ("stride", "size", "program_id", "num_programs")
_SCHEDULE = ("num_warps", "num_stages")
"""Arguments that affect only how a kernel is scheduled, never what it computes."""
_BARRIERS = ("syncthreads", "debug_barrier", "syncwarp")


def constant(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Make an integer one larger and one smaller."""
    if not isinstance(node, ast.Constant) or type(node.value) is not int or _keeps(source, node):
        return
    for new in (node.value + 1, node.value - 1):
        yield Change("constant", *source.span(node), str(new) if new >= 0 else f"({new})", (node.value, new))


def _keeps(source: Source, node: ast.Constant) -> bool:
    """Return whether the next integer would make no sense here: in a range, whose length must be a power of two, as a
    dimension, as the number of warps, or as the value of `other=`."""
    parent = source.parents[node]
    if isinstance(parent, ast.UnaryOp):
        parent = source.parents[parent]
    if isinstance(parent, ast.keyword):
        return parent.arg in (*_SCHEDULE, "other", "axis", "dim")
    if isinstance(parent, ast.Call) and last_name(parent.func) in ("arange", "grid", "gridsize", *_AXIS_CALLS):
        return True
    return _axis_of(source, node) is not None


def _axis_of(source: Source, node: ast.Constant) -> int | None:
    """Return the dimension that a constant selects, or None: `x.shape[1]`, `x.stride(0)`, `tl.sum(v, 1)`."""
    parent, names = source.parents[node], False
    if isinstance(parent, ast.Subscript) and isinstance(parent.value, ast.Attribute):
        names = parent.value.attr == "shape"
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute):
        names = parent.func.attr in _AXIS_CALLS and parent.args[:1] == [node]
        names |= parent.func.attr in ("sum", "max", "min") and parent.args[1:2] == [node]
    return int(node.value) if names else None  # type: ignore[arg-type]


def mask(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Drop the mask of a load or store; of a mask in two parts, drop either."""
    if calls(node, ("load", "store"), "tl"):
        kept = [k for k in node.keywords if k.arg not in ("mask", "other")]
        if len(kept) < len(node.keywords) and any(k.arg == "mask" for k in node.keywords):
            arguments = ", ".join([*(source.text(a) for a in node.args), *(source.text(k) for k in kept)])
            yield source.change(node, "mask", f"{source.text(node.func)}({arguments})")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        for side in (node.left, node.right) if any(isinstance(n, ast.Compare) for n in ast.walk(node)) else ():
            yield source.change(node, "mask", f"({source.text(side)})")


def guard(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Make a condition always true, take either side of a choice, or leave out a part of `a and b`."""
    if isinstance(node, ast.If) and _decides(node.test):
        yield source.change(node.test, "guard", "True")
    if isinstance(node, ast.IfExp) and _decides(node.test):
        yield source.change(node, "guard", f"({source.text(node.body)})")
        yield source.change(node, "guard", f"({source.text(node.orelse)})")
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        for leave in range(len(node.values)):
            kept = [f"({source.text(v)})" for i, v in enumerate(node.values) if i != leave]
            yield source.change(node, "guard", " and ".join(kept))


def _decides(test: ast.expr) -> bool:
    """Return whether a test compares values. `x is None` only handles optional tensors: without it an exception is
    raised."""
    compares = [n for n in ast.walk(test) if isinstance(n, ast.Compare)]
    return bool(compares) and not any(isinstance(o, ast.Is | ast.IsNot) for c in compares for o in c.ops)


def other(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Change the value used where the mask is false: 1 for 0, 0 for anything else."""
    if calls(node, ("load",), "tl"):
        for k in node.keywords:
            if k.arg == "other":
                zero = isinstance(k.value, ast.Constant) and not k.value.value
                yield source.change(k.value, "other", "1.0" if zero else "0.0")


def barrier(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Leave out a barrier."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and last_name(node.value.func) in _BARRIERS:
        yield source.change(node, "barrier", "pass")


def term(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Leave out the offset of an index, or one of the terms of a sum."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return
    parent = source.parents[node]
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add) and parent.left is node:
        return  # part of a longer sum
    terms = _terms(node)
    pointer = calls(parent, ("load", "store"), "tl") and parent.args[:1] == [node]
    for leave in range(len(terms)):
        if pointer and (leave == 0 or len(terms) < 3):
            continue  # the pointer and at least one offset are needed
        kept = " + ".join(_grouped(source, t) for i, t in enumerate(terms) if i != leave)
        yield source.change(node, "term", f"({kept})")


def _terms(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_terms(node.left), node.right]
    return [node]


def _grouped(source: Source, node: ast.expr) -> str:
    text = source.text(node)
    return text if isinstance(node, ast.Name | ast.Constant | ast.Call | ast.Subscript | ast.Attribute) else f"({text})"


def axis(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Swap rows and columns: `shape[1]`, `stride(0)`, `sum(v, 1)`, `[:, None]`, `rows, cols = x.shape`, stride for
    cols."""
    if isinstance(node, ast.Constant) and type(node.value) is int and node in source.parents:
        which = _axis_of(source, node)
        reduces = isinstance(p := source.parents[node], ast.Call) and last_name(p.func) in ("sum", "max", "min")
        if which == 1 or (which == 0 and not reduces):
            yield source.change(node, "axis", str(1 - which))
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        new = {":, None": "None, :", "None, :": ":, None"}.get(source.text(node.slice))
        if new is not None:
            yield source.change(node.slice, "axis", new)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and len(target.elts) == 2:
            yield source.change(target, "axis", ", ".join(source.text(e) for e in reversed(target.elts)))
    if isinstance(node, ast.Name) and node.id == "stride" and isinstance(node.ctx, ast.Load):
        function = next((n for n in source.above(node) if isinstance(n, ast.FunctionDef)), None)
        if function and "cols" in [a.arg for a in function.args.args]:
            yield source.change(node, "axis", "cols")
