"""Python's syntax trees, read by one thread at a time.

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
