"""Reads ops and kernels out of a Python or CUDA file without importing it.

A kernel's declaration is read from its decorator's literals. Of an op, only the statements it needs are run: the parent
process must hold the oracle, and must not run kernels."""

from __future__ import annotations

import ast
import builtins
import re
import sys
import types
from pathlib import Path

from assay.errors import SourceError, UsageError
from assay.kernel import BACKENDS, Address, Kernel
from assay.op import Op


def parse(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_text(), filename=str(file))
    except SyntaxError as error:
        line = (error.text or "").strip()
        raise SourceError(
            f"{error.msg}: {line}", where=f"{file}:{error.lineno}", fix="mend the syntax and try again"
        ) from None
    except FileNotFoundError:
        raise UsageError(
            f"no file called {file}", fix="check the path; kernels of the library are named like gelu/triton"
        ) from None


def ops_in(file: Path) -> dict[str, Op]:
    """The ops declared in `file`, by name."""
    tree = parse(file)
    wanted = [n for n in tree.body if isinstance(n, ast.FunctionDef) and _decorator(n, "op")]
    if not wanted:
        return {}
    needed = _closure(tree, wanted)
    module = ast.Module([n for n in tree.body if n in needed], type_ignores=[])
    home = types.ModuleType(f"assay_ops_{file.parent.name}_{file.stem}")
    home.__file__ = str(file)
    sys.modules[home.__name__] = home  # torch.compile looks a function's module up by name
    space = vars(home)
    try:
        exec(compile(module, str(file), "exec"), space)
    except Exception as error:
        at = error.__traceback__
        while at and at.tb_next:
            at = at.tb_next
        where = f"{file}:{at.tb_lineno}" if at and at.tb_frame.f_code.co_filename == str(file) else str(file)
        raise SourceError(
            f"the op's declaration failed: {type(error).__name__}: {error}",
            where=where,
            fix="an op is declared with @op(axes=…, inputs=…, outputs=…); see docs/first-kernel.md",
        ) from error
    return {v.name: v for v in list(space.values()) if isinstance(v, Op)}


def kernels_in(file: Path, *, backend: str = "", variant: str = "") -> list[Kernel]:
    """The kernels declared in a Python file. `backend` and `variant` are what the file's name says, if anything."""
    tree = parse(file)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and (decorator := _decorator(node, "kernel")):
            found.append(_kernel(file, tree, node, decorator, backend, variant))
    return found


def kernels_in_cuda(file: Path, op: str) -> list[Kernel]:
    """A bare .cu file: its `// assay: name<T><<<grid, block>>>(arguments)` comments are the launches."""
    if not file.exists():
        raise UsageError(f"no file called {file}", fix="check the path")
    lines = file.read_text().splitlines()
    launches = tuple(
        (i, m[1]) for i, line in enumerate(lines, 1) if (m := re.match(r"\s*//\s*assay:\s*(.+?)\s*$", line))
    )
    if not launches:
        raise SourceError(
            "no launch comment in this file",
            where=str(file),
            fix="say how it is launched, e.g. `// assay: gelu<T><<<cdiv(n, 256), 256>>>(x, out, n)`",
        )
    return [Kernel(Address(op, "cuda", file.stem), file.resolve(), line=launches[0][0], launches=launches)]


def _kernel(
    file: Path, tree: ast.Module, node: ast.FunctionDef, decorator: ast.Call, backend: str, variant: str
) -> Kernel:
    where = f"{file}:{decorator.lineno}"
    try:
        told = {k.arg: ast.literal_eval(k.value) for k in decorator.keywords if k.arg}
        op = ast.literal_eval(decorator.args[0]) if decorator.args else told.pop("op")
    except (ValueError, KeyError):
        raise SourceError("@kernel takes literals only: it is read without running the file", where=where,
                          fix='write it as @kernel("gelu", tune={"BLOCK": [512, 1024]})') from None  # fmt: skip
    backend = told.get("backend") or backend or _backend_of(tree)
    if backend not in BACKENDS:
        raise SourceError(f"no backend called '{backend}'", where=where, fix=f"one of: {', '.join(BACKENDS)}")
    own = "" if node.name == op else node.name
    arguments = node.args
    return Kernel(
        Address(op, backend, told.get("variant") or variant or (own if not _in_library(file) else "")),
        file.resolve(), node.name, node.lineno,
        tune=told.get("tune", {}), scratch=told.get("scratch", {}), dtypes=tuple(told.get("dtypes", ())),
        parameters=tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)),
        returns=bool(told.get("returns", False)),
        needs=told.get("needs", ""), requires=tuple(told.get("requires", ())), most=told.get("most", {}),
        expects=told.get("expects", {}),
    )  # fmt: skip


def _in_library(file: Path) -> bool:
    return Path(__file__).parent in file.resolve().parents


def _decorator(node: ast.FunctionDef, name: str) -> ast.Call | None:
    for d in node.decorator_list:
        if isinstance(d, ast.Call):
            f = d.func
            if (isinstance(f, ast.Name) and f.id == name) or (isinstance(f, ast.Attribute) and f.attr == name):
                return d
    return None


def _backend_of(tree: ast.Module) -> str:
    """The language a user's file is written in, by what it imports."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{a.name}" for a in node.names}
    for name, backend in (
        ("triton", "triton"),
        ("assay.backends.cuda", "cuda"),
        ("cupy", "cupy"),
        ("numba.cuda", "numba"),
        ("assay.backends.numba", "numba"),
        ("numba", "njit"),
    ):
        if any(n == name or n.startswith(name + ".") for n in names):
            return backend
    compiled = any(
        isinstance(n, ast.Attribute) and n.attr == "compile" and isinstance(n.value, ast.Name) and n.value.id == "torch"
        for n in ast.walk(tree)
    )
    return "inductor" if compiled else "torch"


def _closure(tree: ast.Module, wanted: list[ast.FunctionDef]) -> set[ast.stmt]:
    """The top-level statements that `wanted` need, directly or not."""
    binds: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _bound(statement):
            binds.setdefault(name, []).append(statement)
    needed: set[ast.stmt] = set()
    todo: list[ast.stmt] = list(wanted)
    while todo:
        statement = todo.pop()
        if statement in needed:
            continue
        needed.add(statement)
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and not hasattr(builtins, node.id):
                todo += binds.get(node.id, [])
    future = [s for s in tree.body if isinstance(s, ast.ImportFrom) and s.module == "__future__"]
    return needed | set(future)


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(a.asname or a.name).split(".")[0] for a in statement.names}
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
