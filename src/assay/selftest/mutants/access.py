"""Changes to which elements a kernel written in Python touches, and when: indices, masks, guards, axes, barriers."""

import ast
from collections.abc import Iterator

from assay.selftest.mutants.nodes import called, calls, whole
from assay.selftest.mutants.source import Change, Source

_AXIS_CALLS = ("stride", "size", "program_id", "num_programs")
_SCHEDULE = ("num_warps", "num_stages")
"""Arguments that choose how a kernel is scheduled and never what it computes."""
_BARRIERS = ("syncthreads", "debug_barrier", "syncwarp")


def constant(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """An integer one larger and one smaller."""
    if not isinstance(node, ast.Constant) or type(node.value) is not int or _keeps(source, node):
        return
    for new in (node.value + 1, node.value - 1):
        yield Change("constant", *source.span(node), str(new) if new >= 0 else f"({new})", (node.value, new))


def _keeps(source: Source, node: ast.Constant) -> bool:
    """Constants of which a neighbour means nothing: where a range begins that must be a power of two long, which
    dimension is meant, how many warps there are, what `other=` says."""
    parent = source.parents[node]
    if isinstance(parent, ast.UnaryOp):
        parent = source.parents[parent]
    if isinstance(parent, ast.keyword):
        return parent.arg in (*_SCHEDULE, "other", "axis", "dim")
    if isinstance(parent, ast.Call) and called(parent.func) in ("arange", "grid", "gridsize", *_AXIS_CALLS):
        return True
    return _axis_of(source, node) is not None


def _axis_of(source: Source, node: ast.Constant) -> int | None:
    """The dimension a constant names, where it names one: `x.shape[1]`, `x.stride(0)`, `tl.sum(v, 1)`."""
    parent = source.parents[node]
    if isinstance(parent, ast.Subscript) and isinstance(parent.value, ast.Attribute) and parent.value.attr == "shape":
        return int(node.value)  # type: ignore[arg-type]
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute):
        if parent.func.attr in _AXIS_CALLS and parent.args[:1] == [node]:
            return int(node.value)  # type: ignore[arg-type]
        if parent.func.attr in ("sum", "max", "min") and parent.args[1:2] == [node]:
            return int(node.value)  # type: ignore[arg-type]
    return None


def mask(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """The mask of a load or store dropped; of a mask in two parts, either."""
    if calls(node, "load", "tl") or calls(node, "store", "tl"):
        assert isinstance(node, ast.Call)
        kept = [k for k in node.keywords if k.arg not in ("mask", "other")]
        if len(kept) < len(node.keywords) and any(k.arg == "mask" for k in node.keywords):
            arguments = ", ".join([*(source.text(a) for a in node.args), *(source.text(k) for k in kept)])
            yield whole(source, node, "mask", f"{source.text(node.func)}({arguments})")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd) and _is_condition(node):
        for side in (node.left, node.right):
            yield whole(source, node, "mask", f"({source.text(side)})")


def _is_condition(node: ast.BinOp) -> bool:
    return any(isinstance(n, ast.Compare) for n in ast.walk(node))


def guard(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """A condition that is always true, or of a choice either side; `a and b` loses a part."""
    if isinstance(node, ast.If) and _decides(node.test):
        yield whole(source, node.test, "guard", "True")
    if isinstance(node, ast.IfExp) and _decides(node.test):
        yield whole(source, node, "guard", f"({source.text(node.body)})")
        yield whole(source, node, "guard", f"({source.text(node.orelse)})")
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        for leave in range(len(node.values)):
            kept = [f"({source.text(v)})" for i, v in enumerate(node.values) if i != leave]
            yield whole(source, node, "guard", " and ".join(kept))


def _decides(test: ast.expr) -> bool:
    """`x is None` looks after optional tensors; without it there is only an exception."""
    compares = [n for n in ast.walk(test) if isinstance(n, ast.Compare)]
    return bool(compares) and not any(isinstance(o, ast.Is | ast.IsNot) for c in compares for o in c.ops)


def other(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Another value where the mask is false: 1 for 0, 0 for all else."""
    if calls(node, "load", "tl"):
        assert isinstance(node, ast.Call)
        for k in node.keywords:
            if k.arg == "other":
                zero = isinstance(k.value, ast.Constant) and not k.value.value
                yield whole(source, k.value, "other", "1.0" if zero else "0.0")


def barrier(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """A barrier left out."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and called(node.value.func) in _BARRIERS:
        yield whole(source, node, "barrier", "pass")


def term(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """An index without its offset, a sum without one of its terms."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return
    parent = source.parents[node]
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add) and parent.left is node:
        return  # part of a longer sum
    terms = _terms(node)
    pointer = (calls(parent, "load", "tl") or calls(parent, "store", "tl")) and parent.args[:1] == [node]  # type: ignore[attr-defined]
    for leave in range(len(terms)):
        if pointer and (leave == 0 or len(terms) < 3):
            continue  # without the pointer, or a pointer alone, nothing can be loaded
        kept = " + ".join(_grouped(source, t) for i, t in enumerate(terms) if i != leave)
        yield whole(source, node, "term", f"({kept})")


def _terms(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_terms(node.left), node.right]
    return [node]


def _grouped(source: Source, node: ast.expr) -> str:
    text = source.text(node)
    return text if isinstance(node, ast.Name | ast.Constant | ast.Call | ast.Subscript | ast.Attribute) else f"({text})"


def axis(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Rows for columns: `shape[1]`, `stride(0)`, `sum(v, 1)`, `[:, None]`, `rows, cols = x.shape`, stride for cols."""
    if isinstance(node, ast.Constant) and type(node.value) is int and node in source.parents:
        which = _axis_of(source, node)
        reduces = isinstance(p := source.parents[node], ast.Call) and called(p.func) in ("sum", "max", "min")
        if which == 1 or (which == 0 and not reduces):
            yield whole(source, node, "axis", str(1 - which))
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        new = {":, None": "None, :", "None, :": ":, None"}.get(source.text(node.slice))
        if new is not None:
            yield whole(source, node.slice, "axis", new)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and len(target.elts) == 2:
            yield whole(source, target, "axis", ", ".join(source.text(e) for e in reversed(target.elts)))
    if isinstance(node, ast.Name) and node.id == "stride" and isinstance(node.ctx, ast.Load):
        function = source.parents[node]
        while function in source.parents and not isinstance(function, ast.FunctionDef):
            function = source.parents[function]
        if isinstance(function, ast.FunctionDef) and "cols" in [a.arg for a in function.args.args]:
            yield whole(source, node, "axis", "cols")
