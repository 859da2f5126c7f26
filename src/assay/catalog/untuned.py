"""The identity of a kernel's source without its space: measurements stay valid when `tune=` gets a new value."""

import ast
import hashlib

from assay import provenance
from assay.catalog.source import parse
from assay.kernel import Kernel

_SPACE = ("tune", "fits")


def hash_without_space(kernel: Kernel) -> str:
    """Return a hash of a kernel's file and of all of Assay's files that it uses. Comments, layout and spaces of
    tunables in the kernel's own Python file do not count. Empty for a kernel that has no file."""
    if kernel.file is None:
        return ""
    whole = hashlib.sha256()
    for part in provenance.parts(kernel.file):
        own = part == kernel.file and part.suffix == ".py"
        whole.update(ast.dump(_without_space(parse(part))).encode() if own else part.read_bytes())
    return whole.hexdigest()[:16]


def _without_space(tree: ast.Module) -> ast.Module:
    """Return the tree without the arguments that declare spaces, and without constants that only those use."""
    spaces: list[ast.expr] = []
    for node in ast.walk(tree):
        for decorator in getattr(node, "decorator_list", ()):
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).rpartition(".")[2] == "kernel":
                spaces += [k.value for k in decorator.keywords if k.arg in _SPACE]
                decorator.keywords = [k for k in decorator.keywords if k.arg not in _SPACE]
    named = {n.id for value in spaces for n in ast.walk(value) if isinstance(n, ast.Name)}
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    tree.body = [node for node in tree.body if not _assigns(node, named - used)]
    return tree


def _assigns(node: ast.stmt, names: set[str]) -> bool:
    return isinstance(node, ast.Assign) and all(isinstance(t, ast.Name) and t.id in names for t in node.targets)
