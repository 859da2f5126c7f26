"""What the operators on Python's syntax tree share."""

import ast

from assay.selftest.mutants.source import Change, Source


def whole(source: Source, node: ast.expr | ast.stmt | ast.keyword, operator: str, text: str, **more: str) -> Change:
    return Change(operator, *source.span(node), text, **more)  # type: ignore[arg-type]


def called(function: ast.expr) -> str:
    """The last part of a called name: `load` of `tl.load`."""
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def calls(node: ast.AST, name: str, *modules: str) -> bool:
    """Is it a call of `name`, as a method of one of these modules?"""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == name
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in modules
    )
