"""Parses Python source, one thread at a time.

CPython 3.11 counts the depth of the tree it builds in one place for all threads: a garbage collection in the middle
lets another thread in, and the first one ends with `SystemError: AST constructor recursion depth mismatch`
(python/cpython#106905; fixed in 3.12)."""

import ast
import threading

_ONE = threading.Lock()


def module(text: str | bytes, filename: str = "<unknown>") -> ast.Module:
    with _ONE:
        return ast.parse(text, filename=filename)


def expression(text: str) -> ast.expr:
    with _ONE:
        return ast.parse(text, mode="eval").body


def last_name(function: ast.expr) -> str:
    """Return the last part of a function's name: `load` of `tl.load`."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
