"""The top-level statements of a file that some of its functions need."""

import ast
import builtins
from collections.abc import Iterator, Sequence

_DEFINITION = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def needed_by(tree: ast.Module, wanted: Sequence[ast.stmt]) -> set[ast.stmt]:
    """Return the top-level statements that `wanted` need, directly or indirectly."""
    binds: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in bound_by(statement):
            binds.setdefault(name, []).append(statement)
    needed: set[ast.stmt] = set()
    todo: list[ast.stmt] = [s for s in tree.body if not set(wanted).isdisjoint(ast.walk(s))]
    while todo:
        statement = todo.pop()
        if statement in needed:
            continue
        needed.add(statement)
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                # A name that is neither assigned here nor a builtin may come from any `import *`.
                todo += binds.get(node.id) or ([] if hasattr(builtins, node.id) else binds.get("*", []))
    future = [s for s in tree.body if isinstance(s, ast.ImportFrom) and s.module == "__future__"]
    return needed | set(future)


def bound_by(statement: ast.stmt) -> set[str]:
    """Return the names that a top-level statement assigns, in whole or, as in `AXES["n"] = …`, in part."""
    if isinstance(statement, _DEFINITION):
        return {statement.name}
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(a.asname or a.name).split(".")[0] for a in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            names.add(node.value.id)
    return names


def top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of the module itself, also those inside its `if`, `try` and `with`."""
    for statement in body:
        yield statement
        for part in ("body", "orelse", "finalbody"):
            if not isinstance(statement, _DEFINITION) and isinstance(inner := getattr(statement, part, None), list):
                yield from top_level(inner)
        for handler in getattr(statement, "handlers", ()):
            yield from top_level(handler.body)
