"""Parses the operands of an instruction."""

from dataclasses import replace

from assay.isa.ptx.cursor import Cursor, error, unexpected
from assay.isa.ptx.expressions import SIGNS, expression
from assay.isa.ptx.numbers import is_hexadecimal_float, literal
from assay.isa.ptx.operands import Address, Arguments, Immediate, Operand, Pair, Register, Sink, Symbol, Vector
from assay.isa.ptx.scope import Scope
from assay.isa.ptx.tokens import NAME


def operands(statement: Cursor, scope: Scope, call: bool) -> tuple[Operand, ...]:
    """Parse all operands of a statement. Those of a call may be in parentheses."""
    tokens = statement.tokens[statement.at :] if statement.at else statement.tokens
    if not tokens:
        return ()
    if len(tokens) & 1 and tokens[1::2].count(",") == len(tokens) >> 1:  # in most statements each operand is one token
        try:
            return tuple([scope[token] for token in tokens[::2]])
        except LookupError:
            pass
    parsed = statement.separated(lambda: _operand(statement, scope, call))
    statement.finish()
    return tuple(parsed)


def single(c: Cursor, scope: Scope) -> Operand:
    """Parse an operand without brackets or braces: a register, a number, or a name with an offset."""
    sign = c.take() if c.peek() in ("!", "-") and NAME.match("".join(c.tokens[c.at + 1 : c.at + 2])) else ""
    token = c.peek()
    if token in SIGNS or token == "(" or isinstance(literal(token), int):
        return _constant(c)
    try:
        operand = scope[token]
    except LookupError:
        if token.startswith("%") and len(token) > 1:
            raise error(c.line, f"{token[:40]} is neither declared nor a special register") from None
        raise c.fail("an operand") from None
    if sign and not isinstance(operand, Register):
        raise c.fail(f"a register after '{sign}'")
    c.at += 1
    if isinstance(operand, Register) and sign:
        return replace(operand, sign=sign)
    if isinstance(operand, Symbol) and c.peek() in ("+", "-"):
        return replace(operand, offset=expression(c))
    return operand


def _operand(c: Cursor, scope: Scope, call: bool) -> Operand:
    token = c.peek()
    if token == "[":
        return _address(c, scope)
    if token == "{":
        return Vector(_items(c, scope, "}"))
    if token == "(" and call:
        return Arguments(_items(c, scope, ")"))
    first = single(c, scope)
    if not c.accept("|"):
        return first
    second = single(c, scope)
    if isinstance(first, Register | Sink) and isinstance(second, Register | Sink):
        return Pair(first, second)
    raise unexpected(c.line, "a register on either side of '|'", f"{first}|{second}")


def _items(c: Cursor, scope: Scope, end: str) -> tuple[Operand, ...]:
    c.take()
    if c.accept(end):
        return ()
    items = c.separated(lambda: single(c, scope))
    c.expect(end, " or ','")
    return tuple(items)


def _address(c: Cursor, scope: Scope) -> Address:
    c.take()
    first = single(c, scope)
    base: Operand | None = first
    offset = 0
    if isinstance(first, Symbol):
        base, offset = replace(first, offset=0), first.offset
    elif isinstance(first, Register) and c.peek() in ("+", "-"):
        offset = expression(c)
    elif isinstance(first, Immediate) and isinstance(first.value, int):
        base, offset = None, first.value
    if not isinstance(base, Register | Symbol | None):
        raise unexpected(c.line, "a register, a name or a number as address", first)
    more = list[Operand]()
    while c.accept(","):
        more.append(Vector(_items(c, scope, "}")) if c.peek() == "{" else single(c, scope))
    c.expect("]", " or ','")
    return Address(base, offset, tuple(more))


def _constant(c: Cursor) -> Immediate:
    """Parse a number, possibly with a sign, or a constant expression."""
    start = c.at
    if c.accept("-"):
        value = literal(c.peek())
        if isinstance(value, float) and not is_hexadecimal_float(c.peek()):
            return Immediate("-" + c.take(), -value)
        c.at = start
    value = expression(c)
    written = c.tokens[start : c.at]
    if len(written) == 1 or (len(written) == 2 and written[0] == "-"):
        return Immediate("".join(written), value)
    return Immediate(str(value), value)
