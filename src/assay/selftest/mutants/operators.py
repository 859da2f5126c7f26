"""Small changes to a kernel written in Python (Triton, Numba CUDA, njit) and to the code that launches it.

Each operator looks at one node of the syntax tree and yields the texts that may stand in its place."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from assay.selftest.mutants.source import Change, Region, Source, live

Operator = Callable[[Source, ast.AST, str], Iterator[Change]]
"""Source, node and language → changes."""

_BOUNDARY = {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")}
_NEGATED = {ast.Eq: ("==", "!="), ast.NotEq: ("!=", "==")}
_SAME_PRECEDENCE = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
}  # fmt: skip
_OTHER_PRECEDENCE = {ast.Pow: "*", ast.BitAnd: "|", ast.BitOr: "&"}
_NOT_COMMUTATIVE = {
    ast.Sub: "-", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_EXTREMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
_AXIS_CALLS = ("stride", "size", "program_id", "num_programs")
_SCHEDULE = ("num_warps", "num_stages")
"""Arguments that choose how a kernel is scheduled and never what it computes."""
_ROOTS = ("sqrt", "sqrt_rn", "rsqrt")
_BARRIERS = ("syncthreads", "debug_barrier", "syncwarp")
_BF16 = "from assay.backends.njit_halves import _round_bf16, _widen_bf16"
FLOAT_FACTORS = (1.01, 1 + 2**-10)
"""By how much a float constant is changed: one percent, and a little less than fp16 resolves."""


def _whole(source: Source, node: ast.expr | ast.stmt | ast.keyword, operator: str, text: str, **more: str) -> Change:
    return Change(operator, *source.span(node), text, **more)  # type: ignore[arg-type]


def _name(function: ast.expr) -> str:
    """The last part of a called name: `load` of `tl.load`."""
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""


def _is(node: ast.AST, name: str, *modules: str) -> bool:
    """Is it a call of `name`, as a method of one of these modules?"""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == name
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in modules
    )


def boundary(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """`<` becomes `<=`, and so on; `==` becomes `!=`."""
    if not isinstance(node, ast.Compare):
        return
    operands = [node.left, *node.comparators]
    for which, left, right in zip(node.ops, operands, operands[1:], strict=False):
        old, new = _BOUNDARY.get(type(which)) or _NEGATED.get(type(which)) or ("", "")
        if old and (found := source.between(left, right, old)):
            yield Change("boundary", *found, new)


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
    if isinstance(parent, ast.Call) and _name(parent.func) in ("arange", "grid", "gridsize", *_AXIS_CALLS):
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


def floating(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """A float constant changed by one percent and by 2**-10; 0 becomes 1."""
    if not isinstance(node, ast.Constant) or type(node.value) is not float:
        return
    parent = source.parents[node]
    if isinstance(parent, ast.keyword) and parent.arg == "other":
        return
    for new in [node.value * factor for factor in FLOAT_FACTORS] if node.value else [1.0]:
        yield _whole(source, node, "float", repr(new))


def arithmetic(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """`+` becomes `-`, `*` becomes `/`, `//` becomes `*`, `&` becomes `|`, and the other way round."""
    if isinstance(node, ast.BinOp):
        if pair := _SAME_PRECEDENCE.get(type(node.op)):
            if found := source.between(node.left, node.right, pair[0]):
                yield Change("arithmetic", *found, pair[1])
        elif new := _OTHER_PRECEDENCE.get(type(node.op)):
            text = f"(({source.text(node.left)}) {new} ({source.text(node.right)}))"
            yield _whole(source, node, "arithmetic", text)
    # `half //= 2` ends a loop; anything else there only hangs.
    if isinstance(node, ast.AugAssign) and not isinstance(node.op, ast.FloorDiv | ast.RShift):
        pair = _SAME_PRECEDENCE.get(type(node.op))
        if pair and (found := source.between(node.target, node.value, pair[0] + "=")):
            yield Change("arithmetic", *found, pair[1] + "=")


def sign(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """A minus sign dropped."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield _whole(source, node, "sign", f"({source.text(node.operand)})")


def mask(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """The mask of a load or store dropped; of a mask in two parts, either."""
    if _is(node, "load", "tl") or _is(node, "store", "tl"):
        assert isinstance(node, ast.Call)
        kept = [k for k in node.keywords if k.arg not in ("mask", "other")]
        if len(kept) < len(node.keywords) and any(k.arg == "mask" for k in node.keywords):
            arguments = ", ".join(source.text(a) for a in (*node.args, *kept))
            yield _whole(source, node, "mask", f"{source.text(node.func)}({arguments})")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd) and _is_condition(node):
        for side in (node.left, node.right):
            yield _whole(source, node, "mask", f"({source.text(side)})")


def _is_condition(node: ast.BinOp) -> bool:
    return any(isinstance(n, ast.Compare) for n in ast.walk(node))


def guard(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """A condition that is always true, or of a choice either side; `a and b` loses a part."""
    if isinstance(node, ast.If) and _decides(node.test):
        yield _whole(source, node.test, "guard", "True")
    if isinstance(node, ast.IfExp) and _decides(node.test):
        yield _whole(source, node, "guard", f"({source.text(node.body)})")
        yield _whole(source, node, "guard", f"({source.text(node.orelse)})")
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        for leave in range(len(node.values)):
            kept = [f"({source.text(v)})" for i, v in enumerate(node.values) if i != leave]
            yield _whole(source, node, "guard", " and ".join(kept))


def _decides(test: ast.expr) -> bool:
    """`x is None` looks after optional tensors; without it there is only an exception."""
    compares = [n for n in ast.walk(test) if isinstance(n, ast.Compare)]
    return bool(compares) and not any(isinstance(o, ast.Is | ast.IsNot) for c in compares for o in c.ops)


def other(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Another value where the mask is false: 1 for 0, 0 for all else."""
    if _is(node, "load", "tl"):
        assert isinstance(node, ast.Call)
        for k in node.keywords:
            if k.arg == "other":
                zero = isinstance(k.value, ast.Constant) and not k.value.value
                yield _whole(source, k.value, "other", "1.0" if zero else "0.0")


def barrier(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """A barrier left out."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _name(node.value.func) in _BARRIERS:
        yield _whole(source, node, "barrier", "pass")


def accumulator(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """A running sum, or a reduction's terms, kept in 16 bits."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and _in_loop(source, node):
        target, added = source.text(node.target), source.text(node.value)
        for text, prelude in _narrowed(f"{target} + ({added})", language):
            yield _whole(source, node, "accumulator", f"{target} = {text}", prelude=prelude)
    if _is(node, "sum", "tl"):
        assert isinstance(node, ast.Call)
        for text, _ in _narrowed(source.text(node.args[0]), language):
            yield _whole(source, node.args[0], "accumulator", text)


def _in_loop(source: Source, node: ast.AST) -> bool:
    while node in source.parents:
        node = source.parents[node]
        if isinstance(node, ast.For | ast.While):
            return True
    return False


def _narrowed(expression: str, language: str) -> list[tuple[str, str]]:
    """The expression rounded to a 16-bit format and widened again, with what must be imported for it."""
    if language == "triton":
        return [(f"({expression}).to(tl.{t}).to(tl.float32)", "") for t in ("float16", "bfloat16")]
    if language == "numba":
        return [(f"np.float32(np.float16({expression}))", "import numpy as np")]
    return [(f"_widen_bf16(_round_bf16({expression}))", _BF16)]


def narrow(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """A value that was just loaded rounded to 16 bits."""
    if not isinstance(node, ast.Call):
        return
    text = source.text(node)
    if language == "triton" and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
        if [source.text(a) for a in node.args] == ["tl.float32"] and not node.keywords:
            yield _whole(source, node, "narrow", f"{source.text(node.func.value)}.to(tl.bfloat16).to(tl.float32)")
    elif (language, _name(node.func)) in (("numba", "widen"), ("njit", "load")):
        for new, prelude in _narrowed(text, language):
            yield _whole(source, node, "narrow", new, prelude=prelude)


def term(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """An index without its offset, a sum without one of its terms."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return
    parent = source.parents[node]
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add) and parent.left is node:
        return  # part of a longer sum
    terms = _terms(node)
    pointer = (_is(parent, "load", "tl") or _is(parent, "store", "tl")) and parent.args[:1] == [node]  # type: ignore[attr-defined]
    for leave in range(len(terms)):
        if pointer and (leave == 0 or len(terms) < 3):
            continue  # without the pointer, or a pointer alone, nothing can be loaded
        kept = " + ".join(_grouped(source, t) for i, t in enumerate(terms) if i != leave)
        yield _whole(source, node, "term", f"({kept})")


def _terms(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_terms(node.left), node.right]
    return [node]


def _grouped(source: Source, node: ast.expr) -> str:
    text = source.text(node)
    return text if isinstance(node, ast.Name | ast.Constant | ast.Call | ast.Subscript | ast.Attribute) else f"({text})"


def swap(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """The operands of a difference or a quotient, or the two sides of `tl.where`, change places."""
    if isinstance(node, ast.BinOp) and (symbol := _NOT_COMMUTATIVE.get(type(node.op))):
        text = f"(({source.text(node.right)}) {symbol} ({source.text(node.left)}))"
        yield _whole(source, node, "swap", text)
    if any(_is(node, name, "tl", "triton") for name in ("where", "div_rn", "cdiv")):
        assert isinstance(node, ast.Call)
        *first, a, b = (source.text(x) for x in node.args)
        yield _whole(source, node, "swap", f"{source.text(node.func)}({', '.join([*first, b, a])})")


def extreme(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """A minimum becomes a maximum, and the other way round."""
    if isinstance(node, ast.Call) and (new := _EXTREMES.get(_name(node.func))):
        text = new if isinstance(node.func, ast.Name) else f"{source.text(node.func.value)}.{new}"  # type: ignore[attr-defined]
        yield _whole(source, node.func, "extreme", text)


def epsilon(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """eps added outside the root."""
    if not isinstance(node, ast.Call) or _name(node.func) not in _ROOTS or len(node.args) != 1:
        return
    inside = node.args[0]
    if isinstance(inside, ast.BinOp) and isinstance(inside.op, ast.Add) and "eps" in source.text(inside.right):
        root = f"{source.text(node.func)}({source.text(inside.left)})"
        eps = source.text(inside.right)
        moved = f"(1 / (1 / {root} + {eps}))" if _name(node.func) == "rsqrt" else f"({root} + {eps})"
        yield _whole(source, node, "epsilon", moved)


def cast(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """A conversion left out."""
    if not isinstance(node, ast.Call):
        return
    arguments = [source.text(a) for a in node.args]
    if language == "triton" and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
        # A store converts to the tensor's own type anyway.
        if not any("element_ty" in a for a in arguments):
            yield _whole(source, node, "cast", source.text(node.func.value))
    elif isinstance(node.func, ast.Name) and node.func.id in ("widen", "rounded"):
        yield _whole(source, node, "cast", f"({arguments[-1]})")
    elif _name(node.func) in ("int8", "int32", "int64"):
        yield _whole(source, node, "cast", f"({arguments[0]})")


def axis(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Rows for columns: `shape[1]`, `stride(0)`, `sum(v, 1)`, `[:, None]`, `rows, cols = x.shape`, stride for cols."""
    if isinstance(node, ast.Constant) and type(node.value) is int and node in source.parents:
        which = _axis_of(source, node)
        reduces = isinstance(p := source.parents[node], ast.Call) and _name(p.func) in ("sum", "max", "min")
        if which == 1 or (which == 0 and not reduces):
            yield _whole(source, node, "axis", str(1 - which))
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2:
        if (new := {":, None": "None, :", "None, :": ":, None"}.get(source.text(node.slice))) is not None:
            yield _whole(source, node.slice, "axis", new)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and len(target.elts) == 2:
            yield _whole(source, target, "axis", ", ".join(source.text(e) for e in reversed(target.elts)))
    if isinstance(node, ast.Name) and node.id == "stride" and isinstance(node.ctx, ast.Load):
        function = source.parents[node]
        while function in source.parents and not isinstance(function, ast.FunctionDef):
            function = source.parents[function]
        if isinstance(function, ast.FunctionDef) and "cols" in [a.arg for a in function.args.args]:
            yield _whole(source, node, "axis", "cols")


OPERATORS: dict[str, Operator] = {
    "boundary": boundary, "constant": constant, "float": floating, "arithmetic": arithmetic, "sign": sign,
    "mask": mask, "guard": guard, "other": other, "barrier": barrier, "accumulator": accumulator, "narrow": narrow,
    "term": term, "swap": swap, "extreme": extreme, "epsilon": epsilon, "cast": cast, "axis": axis,
}  # fmt: skip
"""By name, in the order in which the mutants of one place come."""


def changes(source: Source, region: Region, language: str) -> Iterator[Change]:
    """Every change that an operator makes in a region."""
    for node in live(region):
        if _in_text(source, node):
            continue
        for operator in OPERATORS.values():
            for change in operator(source, node, language):
                if region.device or not _is_a_choice(change):
                    yield change


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
