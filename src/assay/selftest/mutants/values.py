"""Changes to what a kernel written in Python computes: its operators, constants and number formats."""

import ast
import re
from collections.abc import Iterator

from assay.selftest.mutants.nodes import called, calls, whole
from assay.selftest.mutants.source import Change, Source

_BOUNDARY = {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")}
_NEGATED = {ast.Eq: ("==", "!="), ast.NotEq: ("!=", "==")}
_SAME_PRECEDENCE = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
_OTHER_PRECEDENCE = {ast.Pow: "*", ast.BitAnd: "|", ast.BitOr: "&"}
_NOT_COMMUTATIVE = {
    ast.Sub: "-",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_EXTREMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
_ROOTS = ("sqrt", "sqrt_rn", "rsqrt")
_BF16 = "from assay.backends.njit_halves import _round_bf16, _widen_bf16"
_INDEX = re.compile(
    r"program_id|num_programs|Idx|blockDim|arange|numel|shape"
    r"|\b(?:stride|rows|cols|count|block|threads|row|col|r|c|ROWS|COLS|TILE|BLOCK\w*)\b"
)
"""Words of which indices are made."""
FLOAT_FACTORS = (1.01, 1 + 2**-10)
"""By how much a float constant is changed: one percent, and as little as fp16 resolves."""


def boundary(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """`<` becomes `<=`, and so on; `==` becomes `!=`."""
    if not isinstance(node, ast.Compare):
        return
    operands = [node.left, *node.comparators]
    for which, left, right in zip(node.ops, operands, operands[1:], strict=False):
        old, new = _BOUNDARY.get(type(which)) or _NEGATED.get(type(which)) or ("", "")
        if old and (found := source.between(left, right, old)):
            yield Change("boundary", *found, new)


def floating(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """A float constant changed by one percent and by 2**-10; 0 becomes 1."""
    if not isinstance(node, ast.Constant) or type(node.value) is not float:
        return
    parent = source.parents[node]
    if isinstance(parent, ast.keyword) and parent.arg == "other":
        return
    for new in [node.value * factor for factor in FLOAT_FACTORS] if node.value else [1.0]:
        yield whole(source, node, "float", repr(new))


def arithmetic(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """`+` becomes `-`, `*` becomes `/`, `//` becomes `*`, `&` becomes `|`, and the other way round."""
    if isinstance(node, ast.BinOp):
        if pair := _SAME_PRECEDENCE.get(type(node.op)):
            # An index that is no integer would only be refused.
            new = "//" if pair[1] == "/" and _is_index(source.text(node)) else pair[1]
            if found := source.between(node.left, node.right, pair[0]):
                yield Change("arithmetic", *found, new)
        elif symbol := _OTHER_PRECEDENCE.get(type(node.op)):
            text = f"(({source.text(node.left)}) {symbol} ({source.text(node.right)}))"
            yield whole(source, node, "arithmetic", text)
    # `half //= 2` ends a loop; anything else there only hangs.
    if isinstance(node, ast.AugAssign) and not isinstance(node.op, ast.FloorDiv | ast.RShift):
        pair = _SAME_PRECEDENCE.get(type(node.op))
        if pair and (found := source.between(node.target, node.value, pair[0] + "=")):
            yield Change("arithmetic", *found, pair[1] + "=")


def _is_index(text: str) -> bool:
    return bool(_INDEX.search(text)) and not re.search(r"\d\.|float|exp|load", text)


def sign(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """A minus sign dropped."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield whole(source, node, "sign", f"({source.text(node.operand)})")


def swap(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """The operands of a difference or a quotient, or the two sides of `tl.where`, change places."""
    if isinstance(node, ast.BinOp) and (symbol := _NOT_COMMUTATIVE.get(type(node.op))):
        text = f"(({source.text(node.right)}) {symbol} ({source.text(node.left)}))"
        yield whole(source, node, "swap", text)
    if any(calls(node, name, "tl", "triton") for name in ("where", "div_rn", "cdiv")):
        assert isinstance(node, ast.Call)
        *first, a, b = (source.text(x) for x in node.args)
        yield whole(source, node, "swap", f"{source.text(node.func)}({', '.join([*first, b, a])})")


def extreme(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """A minimum becomes a maximum, and the other way round."""
    if isinstance(node, ast.Call) and (new := _EXTREMES.get(called(node.func))):
        text = new if isinstance(node.func, ast.Name) else f"{source.text(node.func.value)}.{new}"  # type: ignore[attr-defined]
        yield whole(source, node.func, "extreme", text)


def epsilon(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """eps added outside the root."""
    if not isinstance(node, ast.Call) or called(node.func) not in _ROOTS or len(node.args) != 1:
        return
    inside = node.args[0]
    if isinstance(inside, ast.BinOp) and isinstance(inside.op, ast.Add) and "eps" in source.text(inside.right):
        root = f"{source.text(node.func)}({source.text(inside.left)})"
        eps = source.text(inside.right)
        moved = f"(1 / (1 / {root} + {eps}))" if called(node.func) == "rsqrt" else f"({root} + {eps})"
        yield whole(source, node, "epsilon", moved)


def accumulator(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """A running sum, or a reduction's terms, kept in 16 bits."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and _in_loop(source, node):
        target, added = source.text(node.target), source.text(node.value)
        for text, prelude in _narrowed(f"{target} + ({added})", language):
            yield whole(source, node, "accumulator", f"{target} = {text}", prelude=prelude)
    if calls(node, "sum", "tl"):
        assert isinstance(node, ast.Call)
        for text, _ in _narrowed(source.text(node.args[0]), language):
            yield whole(source, node.args[0], "accumulator", text)


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
            yield whole(source, node, "narrow", f"{source.text(node.func.value)}.to(tl.bfloat16).to(tl.float32)")
    elif (language, called(node.func)) in (("numba", "widen"), ("njit", "load")):
        for new, prelude in _narrowed(text, language):
            yield whole(source, node, "narrow", new, prelude=prelude)


def cast(source: Source, node: ast.AST, language: str) -> Iterator[Change]:
    """A conversion left out."""
    if not isinstance(node, ast.Call):
        return
    arguments = [source.text(a) for a in node.args]
    if language == "triton" and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
        # A store converts to the tensor's own type anyway.
        if not any("element_ty" in a for a in arguments):
            yield whole(source, node, "cast", source.text(node.func.value))
    elif isinstance(node.func, ast.Name) and node.func.id in ("widen", "rounded"):
        yield whole(source, node, "cast", f"({arguments[-1]})")
    elif called(node.func) in ("int8", "int32", "int64"):
        yield whole(source, node, "cast", f"({arguments[0]})")
