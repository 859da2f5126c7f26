"""Evaluates constant expressions in C's 64-bit arithmetic; comparisons, `?:` and casts are not supported."""

import operator
from collections.abc import Callable

from assay.isa.ptx.cursor import Cursor, error


def expression(c: Cursor) -> int:
    """Return the value of the constant expression at the cursor."""
    values, waiting, depth = list[int](), list[tuple[int, str]](), 0

    def settle(least: int) -> None:
        """Apply the operators on the stack whose precedence is at least `least`."""
        while waiting and waiting[-1][0] >= least:
            rank, sign = waiting.pop()
            right = values.pop()
            if rank == _UNARY:
                values.append(SIGNS[sign](right))
            elif sign in "/%" and right == 0:
                raise error(c.line, "a constant is divided by zero")
            else:
                values.append(_wrapped(_OPERATORS[sign][1](values.pop(), right)))

    c.accept("+")
    while True:
        while (token := c.peek()) in SIGNS or token == "(":
            depth += token == "("
            waiting.append((-1 if token == "(" else _UNARY, c.take()))
        values.append(c.number("a number"))
        while depth and c.accept(")"):
            settle(0)
            waiting.pop()
            depth -= 1
        if c.peek() not in _OPERATORS:
            break
        rank = _OPERATORS[c.peek()][0]
        settle(rank)
        waiting.append((rank, c.take()))
    settle(0)
    if depth:
        raise c.fail("')'")
    return values[0]


def _wrapped(value: int) -> int:
    """Return the value modulo 2**64, unchanged if an int64 or a uint64 can represent it."""
    return value if -(2**63) <= value < 2**64 else (value + 2**63) % 2**64 - 2**63


def _quotient(left: int, right: int) -> int:
    """Divide, rounding towards zero as in C."""
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


SIGNS: dict[str, Callable[[int], int]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "!": lambda value: int(not value),
}
_OPERATORS: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "|": (1, operator.or_),
    "^": (2, operator.xor),
    "&": (3, operator.and_),
    "<<": (4, lambda a, b: a << b % 64),
    ">>": (4, lambda a, b: a >> b % 64),
    "+": (5, operator.add),
    "-": (5, operator.sub),
    "*": (6, operator.mul),
    "/": (6, _quotient),
    "%": (6, lambda a, b: a - b * _quotient(a, b)),
}
"""The precedence of each operator, and its function."""
_UNARY = 7
