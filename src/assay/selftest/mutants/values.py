"""Mutations of what a Python kernel computes: its operators, constants and number formats."""

import ast
import re
from collections.abc import Iterator

from assay.selftest.mutants.source import Change, Source, calls
from assay.syntax import last_name

_BOUNDARY: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
}
_SAME_PRECEDENCE: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
_OTHER_PRECEDENCE: dict[type[ast.operator], str] = {ast.Pow: "*", ast.BitAnd: "|", ast.BitOr: "&"}
_NOT_COMMUTATIVE = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift)
_EXTREMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
_ROOTS = ("sqrt", "sqrt_rn", "rsqrt")
_BF16 = "from assay.backends.njit_halves import _round_bf16, _widen_bf16"
_INDEX = re.compile(
    r"program_id|num_programs|Idx|blockDim|arange|numel|shape"
    r"|\b(?:stride|rows|cols|count|block|threads|row|col|r|c|ROWS|COLS|TILE|BLOCK\w*)\b"
)
"""Matches words that occur in indices."""
FLOAT_FACTORS = (1.01, 1 + 2**-10)
"""Factors for a float constant: one per cent, and the smallest change that fp16 resolves."""


def boundary(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Replace `<` by `<=`, and so on, and `==` by `!=`."""
    if not isinstance(node, ast.Compare):
        return
    operands = [node.left, *node.comparators]
    for which, left, right in zip(node.ops, operands, operands[1:], strict=False):
        old, new = _BOUNDARY.get(type(which), ("", ""))
        if old and (span := source.between(left, right, old)):
            yield Change("boundary", *span, new)


def floating(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Change a float constant by one percent and by 2**-10; 0 becomes 1."""
    if not isinstance(node, ast.Constant) or type(node.value) is not float:
        return
    parent = source.parents[node]
    if isinstance(parent, ast.keyword) and parent.arg == "other":
        return
    for new in [node.value * factor for factor in FLOAT_FACTORS] if node.value else [1.0]:
        yield source.change(node, "float", repr(new))


def arithmetic(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Replace `+` by `-`, `*` by `/`, `//` by `*`, `&` by `|`, and vice versa."""
    if isinstance(node, ast.BinOp):
        if pair := _SAME_PRECEDENCE.get(type(node.op)):
            # A non-integer index would only be rejected.
            new = "//" if pair[1] == "/" and _is_index(source.text(node)) else pair[1]
            if span := source.between(node.left, node.right, pair[0]):
                yield Change("arithmetic", *span, new)
        elif symbol := _OTHER_PRECEDENCE.get(type(node.op)):
            text = f"(({source.text(node.left)}) {symbol} ({source.text(node.right)}))"
            yield source.change(node, "arithmetic", text)
    # `half //= 2` ends a loop; any change to it only hangs.
    if isinstance(node, ast.AugAssign) and not isinstance(node.op, ast.FloorDiv | ast.RShift):
        pair = _SAME_PRECEDENCE.get(type(node.op))
        if pair and (span := source.between(node.target, node.value, pair[0] + "=")):
            yield Change("arithmetic", *span, pair[1] + "=")


def _is_index(text: str) -> bool:
    return bool(_INDEX.search(text)) and not re.search(r"\d\.|float|exp|load", text)


def sign(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Drop a minus sign."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield source.change(node, "sign", f"({source.text(node.operand)})")


def swap(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Swap the operands of a difference or a quotient, or the two sides of `tl.where`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _NOT_COMMUTATIVE):
        symbol, _ = _SAME_PRECEDENCE[type(node.op)]
        text = f"(({source.text(node.right)}) {symbol} ({source.text(node.left)}))"
        yield source.change(node, "swap", text)
    if calls(node, ("where", "div_rn", "cdiv"), "tl", "triton"):
        *first, a, b = (source.text(x) for x in node.args)
        yield source.change(node, "swap", f"{source.text(node.func)}({', '.join([*first, b, a])})")


def extreme(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Replace a minimum by a maximum, and vice versa."""
    if isinstance(node, ast.Call) and (new := _EXTREMES.get(last_name(node.func))):
        text = new if isinstance(node.func, ast.Name) else f"{source.text(node.func.value)}.{new}"  # type: ignore[attr-defined]
        yield source.change(node.func, "extreme", text)


def epsilon(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Move eps outside the root."""
    if not isinstance(node, ast.Call) or last_name(node.func) not in _ROOTS or len(node.args) != 1:
        return
    inside = node.args[0]
    if isinstance(inside, ast.BinOp) and isinstance(inside.op, ast.Add) and "eps" in source.text(inside.right):
        root = f"{source.text(node.func)}({source.text(inside.left)})"
        eps = source.text(inside.right)
        moved = f"(1 / (1 / {root} + {eps}))" if last_name(node.func) == "rsqrt" else f"({root} + {eps})"
        yield source.change(node, "epsilon", moved)


def accumulator(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Keep a running sum, or a reduction's terms, in 16 bits."""
    if (
        isinstance(node, ast.AugAssign)
        and isinstance(node.op, ast.Add)
        and any(isinstance(n, ast.For | ast.While) for n in source.above(node))
    ):
        target, added = source.text(node.target), source.text(node.value)
        for text, prelude in _narrowed(f"{target} + ({added})", language):
            yield source.change(node, "accumulator", f"{target} = {text}", prelude=prelude)
    if calls(node, ("sum",), "tl"):
        for text, _ in _narrowed(source.text(node.args[0]), language):
            yield source.change(node.args[0], "accumulator", text)


def _narrowed(expression: str, language: str) -> list[tuple[str, str]]:
    """Return the expression rounded to a 16-bit format and widened again, with the imports that it needs."""
    if language == "triton":
        return [(f"({expression}).to(tl.{t}).to(tl.float32)", "") for t in ("float16", "bfloat16")]
    if language == "numba":
        return [(f"np.float32(np.float16({expression}))", "import numpy as np")]
    return [(f"_widen_bf16(_round_bf16({expression}))", _BF16)]


def narrow(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Round a value that was just loaded to 16 bits."""
    if not isinstance(node, ast.Call):
        return
    text = source.text(node)
    if language == "triton" and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
        if [source.text(a) for a in node.args] == ["tl.float32"] and not node.keywords:
            yield source.change(node, "narrow", f"{source.text(node.func.value)}.to(tl.bfloat16).to(tl.float32)")
    elif (language, last_name(node.func)) in (("numba", "widen"), ("njit", "load")):
        for new, prelude in _narrowed(text, language):
            yield source.change(node, "narrow", new, prelude=prelude)


def cast(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """Leave out a conversion."""
    if not isinstance(node, ast.Call):
        return
    arguments = [source.text(a) for a in node.args]
    if language == "triton" and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
        # A store converts to the tensor's own type anyway.
        if not any("element_ty" in a for a in arguments):
            yield source.change(node, "cast", source.text(node.func.value))
    elif isinstance(node.func, ast.Name) and node.func.id in ("widen", "rounded"):
        yield source.change(node, "cast", f"({arguments[-1]})")
    elif last_name(node.func) in ("int8", "int32", "int64"):
        yield source.change(node, "cast", f"({arguments[0]})")
