"""Parses number literals in PTX spelling."""

import re
import struct
from functools import lru_cache

NUMBER = r"""
    0[fF][0-9a-fA-F]{8}(?!\w) | 0[dD][0-9a-fA-F]{16}(?!\w)
  | 0[xX][0-9a-fA-F]+U? | 0[bB][01]+U?
  | (?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+ | [0-9]+U?"""
"""A verbose regular expression."""
_NUMBER = re.compile(NUMBER, re.ASCII | re.VERBOSE)
_LONGEST = 400
"""The most digits of a literal. No 64-bit literal has more, and longer ones would take Python quadratic time."""


@lru_cache(maxsize=8192)
def literal(token: str) -> int | float | None:
    """Return the value of a number; None for any other token, and for an integer that does not fit into 64 bits."""
    if not token or not (token[0].isdecimal() or token[0] == ".") or not _NUMBER.fullmatch(token):
        return None
    if is_hexadecimal_float(token):
        data = bytes.fromhex(token[2:])
        return float(struct.unpack(">f" if len(data) == 4 else ">d", data)[0])
    digits, kind = token.removesuffix("U"), token[1:2].lower()
    if len(digits) > _LONGEST or (digits[0] == "0" and digits.isdecimal() and set(digits) & {"8", "9"}):
        return None
    if kind not in ("x", "b") and not digits.isdecimal():
        return float(digits)
    base = {"x": 16, "b": 2}.get(kind, 8 if digits[0] == "0" else 10)
    value = int(digits, base)
    return value if value < 2**64 else None


def is_hexadecimal_float(token: str) -> bool:
    """Return whether a number is a float written as its bit pattern: `0f3F800000`, `0d3FF0000000000000`."""
    return token[1:2] in ("f", "F", "d", "D")


def canonical(token: str) -> str:
    """Return the number, with hexadecimal floats in a canonical spelling: `0F3f800000` becomes `0f3F800000`."""
    return "0" + token[1].lower() + token[2:].upper() if is_hexadecimal_float(token) else token
