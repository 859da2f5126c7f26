"""Reads ops and kernels out of a Python or CUDA file without importing it.

A kernel's declaration is read from its decorator's literals. Of an op, only the statements it needs are run: the parent
process must hold the oracle, and must not run kernels. What is wrong with one kernel or op does not hide the others."""

import ast
import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from assay.catalog.contract import verify_op
from assay.catalog.declared import addressed, declaration
from assay.catalog.executed import bound_by, executed
from assay.catalog.source import cuda_text, parse
from assay.dtype import dtype
from assay.errors import AssayError, SourceError
from assay.kernel import Address, Kernel
from assay.op import Op

__all__ = ["Contents", "contents", "kernels_in", "kernels_in_cuda", "ops_in", "parse"]

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Decorated = tuple[ast.FunctionDef, ast.expr]

LIBRARY = Path(__file__).resolve().parents[1] / "library"
"""One folder per op."""


@dataclass
class Contents:
    """What a file declares, and what it declares wrongly."""

    ops: dict[str, Op] = field(default_factory=dict)
    kernels: list[Kernel] = field(default_factory=list)
    refused: list[AssayError] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    """Names of functions that were to become ops and did not."""


def contents(file: Path, *, backend: str = "", variant: str = "") -> Contents:
    """The ops and kernels of a Python file. `backend` and `variant` are what the file's name says, if anything."""
    tree, found = parse(file), Contents()
    _read_ops(file, tree, found)
    _read_kernels(file, tree, found, backend, variant)
    return found


def ops_in(file: Path) -> dict[str, Op]:
    """The ops declared in `file`, by name."""
    found = Contents()
    _read_ops(file, parse(file), found)
    if found.refused:
        raise found.refused[0]
    return found.ops


def kernels_in(file: Path, *, backend: str = "", variant: str = "") -> list[Kernel]:
    """The kernels declared in a Python file."""
    found = Contents()
    _read_kernels(file, parse(file), found, backend, variant)
    if found.refused:
        raise found.refused[0]
    return found.kernels


def kernels_in_cuda(file: Path, op: str) -> list[Kernel]:
    """A bare .cu file: its `// assay: name<T><<<grid, block>>>(arguments)` comments are the launches."""
    lines = cuda_text(file).splitlines()
    launches = tuple(
        (i, m[1]) for i, line in enumerate(lines, 1) if (m := re.match(r"\s*//\s*assay:\s*(.+?)\s*$", line))
    )
    if not launches:
        raise SourceError(
            "no launch comment in this file",
            where=str(file),
            fix="say how it is launched, e.g. `// assay: gelu<T><<<cdiv(n, 256), 256>>>(x, out, n)`",
        )
    stem = re.sub(r"\W", "_", file.stem)
    return [Kernel(Address(op, "cuda", stem), file.resolve(), line=launches[0][0], launches=launches)]


def _read_ops(file: Path, tree: ast.Module, found: Contents) -> None:
    wanted = dict(_decorated(file, tree, "op", found))
    if not wanted:
        return
    try:
        made = executed(file, tree, list(wanted))
    except SourceError as problem:
        made, problems = {}, []
        for one in wanted if len(wanted) > 1 else ():  # one of several: the others are read without it
            try:
                made |= executed(file, tree, [one])
            except SourceError as its_problem:
                problems.append(its_problem)
        found.refused += problems or [problem]
    lines: dict[str, int] = {}
    for function, decorator in wanted.items():
        if (op := made.get(function.name)) is None:
            found.broken.add(function.name)
            continue
        line = decorator.lineno
        try:
            verify_op(op, f"{file}:{line}")
        except SourceError as problem:
            found.refused.append(problem)
            found.broken |= {function.name, op.name}
            continue
        if lines.setdefault(op.name, line) != line:
            found.ops.pop(op.name, None)
            found.broken.add(op.name)
            found.refused.append(
                SourceError(
                    f"the op {op.name} is declared on line {lines[op.name]} and on line {line}",
                    where=f"{file}:{line}",
                    fix="give one of them another name: @op(name=…)",
                )
            )
        else:
            found.ops[op.name] = op


def _read_kernels(file: Path, tree: ast.Module, found: Contents, backend: str, variant: str) -> None:
    lines: dict[Address, int] = {}
    library = LIBRARY in file.resolve().parents
    for node, decorator in _decorated(file, tree, "kernel", found):
        try:
            kernel = _kernel(file, tree, node, decorator, backend, variant, library)
        except SourceError as problem:
            found.refused.append(problem)
            continue
        if kernel.address in lines:
            found.kernels = [k for k in found.kernels if k.address != kernel.address]
            found.refused.append(
                SourceError(
                    f"{kernel} is defined on line {lines[kernel.address]} and again on line {kernel.line}",
                    where=f"{file}:{kernel.line}",
                    fix='tell them apart: @kernel(…, variant="other"), and two function names',
                )
            )
        else:
            lines[kernel.address] = kernel.line
            found.kernels.append(kernel)


def _kernel(
    file: Path, tree: ast.Module, node: ast.FunctionDef, decorator: ast.expr, backend: str, variant: str, library: bool
) -> Kernel:
    where = f"{file}:{decorator.lineno}"
    assert isinstance(decorator, ast.Call)
    said = declaration(decorator, tree, where)
    address = addressed(said, file, node.name, backend or _backend_of(tree), variant, library)
    arguments = node.args
    if arguments.vararg or arguments.kwarg:
        star = f"*{arguments.vararg.arg}" if arguments.vararg else f"**{arguments.kwarg.arg}" if arguments.kwarg else ""
        raise SourceError(
            f"{node.name} takes {star}: which arguments it asks for is read from its signature",
            where=f"{file}:{node.lineno}",
            fix="name every parameter",
        )
    return Kernel(
        address,
        file.resolve(),
        node.name,
        node.lineno,
        tune=said.get("tune", {}),
        scratch=said.get("scratch", {}),
        dtypes=tuple(dtype(d).name for d in said.get("dtypes", ())),
        parameters=tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)),
        returns=said.get("returns", False),
        needs=said.get("needs", ""),
        requires=tuple(said.get("requires", ())),
        most=said.get("most", {}),
        expects=said.get("expects", {}),
        op_file=(file.parent / said["op"].rpartition(":")[0]).resolve() if ":" in said["op"] else None,
    )


def _decorated(file: Path, tree: ast.Module, word: str, found: Contents) -> Iterator[Decorated]:
    """The functions at the top level that carry `@word(...)`. What carries it elsewhere or otherwise is refused."""
    spellings = _spellings(tree, word)

    def marks(node: ast.AST) -> ast.expr | None:
        called = node.func if isinstance(node, ast.Call) else node
        with contextlib.suppress(Exception):
            if isinstance(called, ast.Name | ast.Attribute) and ast.unparse(called) in spellings:
                return node if isinstance(node, ast.expr) else None
        return None

    def refuse(what: str, line: int, fix: str) -> None:
        found.refused.append(SourceError(what, where=f"{file}:{line}", fix=fix))

    top = set(_top_level(tree.body))
    bound = {name for statement in tree.body for name in bound_by(statement)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Call) and marks(node.func):
            given = node.args[0] if node.args else node
            what = "a lambda" if isinstance(given, ast.Lambda) else f"`{ast.unparse(given)[:40]}`"
            refuse(
                f"@{word} is applied to {what}, not to a function's definition",
                node.lineno,
                f"write `def` with @{word}(…) above it",
            )
        if not isinstance(node, Function):
            continue
        decorator = next((d for d in node.decorator_list if marks(d)), None)
        if decorator is None:
            if word not in bound and any(isinstance(d, ast.Call) and _is(d.func, word) for d in node.decorator_list):
                refuse(
                    f"@{word} stands above {node.name}, but the file does not import it",
                    node.lineno,
                    f"from assay import {word}",
                )
            continue
        if not isinstance(decorator, ast.Call):
            example = '@kernel("gelu")' if word == "kernel" else "@op(axes=…, inputs=…, outputs=…)"
            refuse(f"@{word} stands without its arguments", decorator.lineno, f"write {example}")
        elif isinstance(node, ast.ClassDef):
            refuse(f"@{word} stands above the class {node.name}", node.lineno, "put it above a function")
        elif isinstance(node, ast.AsyncFunctionDef):
            refuse(f"{node.name} is an async function: calling it would run nothing", node.lineno, "write `def`")
        elif node not in top:
            refuse(
                f"{node.name} is not at the top level of its file",
                node.lineno,
                "a worker must be able to import it: move it there",
            )
        else:
            yield node, decorator


def _is(node: ast.expr, word: str) -> bool:
    return isinstance(node, ast.Name) and node.id == word


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of the module itself, also those inside its `if`, `try` and `with`."""
    for statement in body:
        yield statement
        for part in ("body", "orelse", "finalbody"):
            if not isinstance(statement, Function) and isinstance(inner := getattr(statement, part, None), list):
                yield from _top_level(inner)
        for handler in getattr(statement, "handlers", ()):
            yield from _top_level(handler.body)


def _spellings(tree: ast.Module, word: str) -> set[str]:
    """How the file may write Assay's `kernel` or `op`: by the names that it imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("assay", f"assay.{word}"):
            found |= {a.asname or a.name for a in node.names if a.name == word}
            found |= {word for a in node.names if a.name == "*"}
        elif isinstance(node, ast.Import):
            found |= {f"{a.asname or a.name}.{word}" for a in node.names if a.name == "assay"}
    return found


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
