"""Makes small changes to a kernel written in CUDA C++, on its tokens.

The blanks around a token, as clang-format sets them, show whether `<` compares or opens template arguments, and whether
`*` multiplies or declares a pointer."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from assay.selftest.mutants.source import Change
from assay.selftest.mutants.tokens import CLOSE, OPEN, CudaSource
from assay.selftest.mutants.values import FLOAT_FACTORS

_BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
_ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "&": "|", "|": "&"}
_COMPOUND = {"+=": "-=", "-=": "+=", "*=": "/="}
_EXTREMES = {"min": "max", "max": "min", "fmaxf": "fminf", "fminf": "fmaxf", "Max": "Sum"}
_ENDS_TERM = {
    "+",
    "-",
    "<",
    ">",
    "<=",
    ">=",
    "==",
    "!=",
    "&&",
    "||",
    "?",
    ":",
    ",",
    ";",
    "=",
    "&",
    "|",
    "<<",
    ">>",
    "+=",
    "-=",
    "*=",
    "/=",
    "return",
    "{",
    "}",
}
_HIDDEN = ("barrier", "guard", "boundary")
"""Changes that may read outside a tensor or cause a race without changing an output."""


def changes(source: CudaSource, names: set[str]) -> Iterator[Change]:
    """Yield every change in the functions that code naming `names` reaches."""
    for at in source.reached(names):
        for operator in _OPERATORS:
            for change in operator(source, at):
                yield replace(change, hidden=change.operator in _HIDDEN)


def _spaced(source: CudaSource, at: int) -> bool:
    token = source.tokens[at]
    return source.text[token.start - 1].isspace() and source.text[token.end : token.end + 1].isspace()


def _symbol(source: CudaSource, at: int) -> Iterator[Change]:
    """Replace a comparison or an arithmetic operator by another."""
    token = source.tokens[at]
    for operator, others in (("boundary", _BOUNDARY), ("arithmetic", _ARITHMETIC)):
        if token.text in others and _spaced(source, at):
            yield source.change(operator, token.start, token.end, others[token.text])
    if token.text in _COMPOUND:
        yield source.change("arithmetic", token.start, token.end, _COMPOUND[token.text])


def _numbers(source: CudaSource, at: int) -> Iterator[Change]:
    token = source.tokens[at]
    if token.kind != "number":
        return
    if re.fullmatch(r"\d+|0[xX][0-9a-fA-F]+", token.text):
        value = int(token.text, 0)
        for new in (value + 1, value - 1):
            text = str(new) if new >= 0 else f"({new})"
            yield source.change("constant", token.start, token.end, text, (value, new))
    elif re.search(r"[.eE]", token.text) and not token.text.lower().startswith("0x"):
        suffix = token.text[-1] if token.text[-1] in "fFlL" else ""
        number = float(token.text.rstrip("fFlL"))
        for changed in [number * factor for factor in FLOAT_FACTORS] if number else [1.0]:
            yield source.change("float", token.start, token.end, f"{changed!r}{suffix}")


def _guard(source: CudaSource, at: int) -> Iterator[Change]:
    """Make the condition of an `if` always true (not of `if constexpr`), or leave out a side of `&&`."""
    tokens = source.tokens
    if tokens[at].text == "if" and tokens[at + 1].text == "(":
        end = source.partner(at + 1)
        inside = source.text[tokens[at + 1].end : tokens[end].start]
        if re.search(r"[<>=!]", inside):
            yield source.change("guard", tokens[at + 1].end, tokens[end].start, "true")
    if tokens[at].text == "&&":
        left = _operand(source, at, -1, {"||", "?", "=", ",", ";"})
        right = _operand(source, at, 1, {"||", "?", ",", ";"})
        for first, last in ((left, at - 1), (at + 1, right)):
            yield source.change("guard", tokens[left].start, tokens[right].end, _words(source, first, last))


def _barrier(source: CudaSource, at: int) -> Iterator[Change]:
    tokens = source.tokens
    if tokens[at].text in ("__syncthreads", "__syncwarp") and tokens[at + 1].text == "(":
        end = source.partner(at + 1)
        yield source.change("barrier", tokens[at].start, tokens[end].end, "")


def _accumulator(source: CudaSource, at: int) -> Iterator[Change]:
    """Round `sum += x` to 16 bits if the sum is a local float."""
    tokens = source.tokens
    if tokens[at].text != "+=" or tokens[at - 1].kind != "name":
        return
    name = tokens[at - 1].text
    if not re.search(rf"\bfloat\b[^;(]*\b{name}\b\s*=", source.text):
        return
    end = _operand(source, at, 1, {";", ","})
    text = f"{name} = __half2float(__float2half({name} + ({_words(source, at + 1, end)})))"
    yield source.change("accumulator", tokens[at - 1].start, tokens[end].end, text)


def _cast(source: CudaSource, at: int) -> Iterator[Change]:
    words = [t.text for t in source.tokens[at : at + 4]]
    if words == ["(", "long", "long", ")"]:
        yield source.change("cast", source.tokens[at].start, source.tokens[at + 3].end, "")


def _narrow(source: CudaSource, at: int) -> Iterator[Change]:
    tokens = source.tokens
    if tokens[at].text == "widen" and tokens[at + 1].text == "(":
        end = source.partner(at + 1)
        text = f"__half2float(__float2half({_words(source, at, end)}))"
        yield source.change("narrow", tokens[at].start, tokens[end].end, text)


def _term(source: CudaSource, at: int) -> Iterator[Change]:
    """Leave out a term of a sum, or swap the operands of a difference."""
    tokens = source.tokens
    if tokens[at].text not in ("+", "-") or not _spaced(source, at):
        return
    left, right = _operand(source, at, -1, _ENDS_TERM), _operand(source, at, 1, _ENDS_TERM)
    if left >= at or right <= at:
        return
    first, second = _words(source, left, at - 1), _words(source, at + 1, right)
    span = tokens[left].start, tokens[right].end
    if tokens[at].text == "-":
        yield source.change("swap", *span, f"{second} - {first}")
        return
    yield source.change("term", *span, first)
    yield source.change("term", *span, second)


def _extreme(source: CudaSource, at: int) -> Iterator[Change]:
    tokens = source.tokens
    if (new := _EXTREMES.get(tokens[at].text)) and tokens[at + 1].text in ("(", ">"):
        yield source.change("extreme", tokens[at].start, tokens[at].end, new)


def _epsilon(source: CudaSource, at: int) -> Iterator[Change]:
    tokens = source.tokens
    if tokens[at].text not in ("sqrtf", "rsqrtf") or tokens[at + 1].text != "(":
        return
    end = source.partner(at + 1)
    if [t.text for t in tokens[end - 2 : end]] != ["+", "eps"]:
        return
    root = f"{tokens[at].text}({_words(source, at + 2, end - 3)})"
    moved = f"(1.0f / (1.0f / {root} + eps))" if tokens[at].text == "rsqrtf" else f"({root} + eps)"
    yield source.change("epsilon", tokens[at].start, tokens[end].end, moved)


def _axis(source: CudaSource, at: int) -> Iterator[Change]:
    token = source.tokens[at]
    if token.text == "stride" and source.tokens[at - 1].text == "*":
        yield source.change("axis", token.start, token.end, "cols")
    if token.text in ("threadIdx", "blockIdx", "blockDim") and source.tokens[at + 1].text == ".":
        which = source.tokens[at + 2]
        if new := {"x": "y", "y": "x"}.get(which.text):
            yield source.change("axis", which.start, which.end, new)


def _operand(source: CudaSource, at: int, step: int, ends: set[str]) -> int:
    """Return the last token of the operand to the left or right of the operator at `at`."""
    inner, outer = (OPEN, CLOSE) if step > 0 else (CLOSE, OPEN)
    place, last = at + step, at
    while 0 <= place < len(source.tokens):
        text = source.tokens[place].text
        if text in inner:
            place = source.partner(place)
        elif text in outer or (text in ends and (_spaced(source, place) or text in (",", ";", "return", "{", "}"))):
            break
        last, place = place, place + step
    return last


def _words(source: CudaSource, first: int, last: int) -> str:
    return source.text[source.tokens[first].start : source.tokens[last].end]


_OPERATORS: tuple[Callable[[CudaSource, int], Iterator[Change]], ...] = (
    _symbol,
    _numbers,
    _guard,
    _barrier,
    _accumulator,
    _narrow,
    _term,
    _extreme,
    _epsilon,
    _cast,
    _axis,
)
