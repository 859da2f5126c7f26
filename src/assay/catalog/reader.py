"""Reads ops and kernels from a Python or CUDA file without importing it.

A kernel's declaration is read from its decorator's literals. Of an op, only the statements it needs are run: the parent
process computes the references, and must not run kernels. A mistake in one kernel or op does not hide the others."""

import ast
import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from assay.backends.declaration import kernels as declared_in
from assay.catalog.contract import verify_op
from assay.catalog.declared import OP, addressed, declaration
from assay.catalog.executed import executed
from assay.catalog.language import language
from assay.catalog.needed import bound_by, top_level
from assay.catalog.signature import with_default
from assay.catalog.source import cuda_text, parse
from assay.dtype import dtype
from assay.errors import AssayError, SourceError
from assay.kernel import Address, Kernel
from assay.op import Op

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_COMMENT = re.compile(r"\s*//\s*assay:\s*(.+?)\s*$")
_OP_COMMENT = re.compile(rf"op\s+{OP}")
_VARIANT_COMMENT = re.compile(r"variant\s+(\w+)")
LIBRARY = Path(__file__).resolve().parents[1] / "library"
"""One folder per op."""


@dataclass
class Contents:
    """What a file declares, and the errors in it."""

    ops: dict[str, Op] = field(default_factory=dict)
    kernels: list[Kernel] = field(default_factory=list)
    refused: list[AssayError] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    """Names of functions and ops whose declaration was refused."""

    def verified(self) -> Self:
        """Return the contents, or raise the first error if there is one."""
        if self.refused:
            raise self.refused[0]
        return self


def contents(file: Path, *, backend: str = "", variant: str = "") -> Contents:
    """Return the ops and kernels of a Python file. `backend` and `variant` are those in the file's name, if any."""
    tree = parse(file)
    return _read_kernels(file, tree, _read_ops(file, tree, Contents()), backend, variant)


def ops_in(file: Path) -> dict[str, Op]:
    """Return the ops declared in `file`, by name."""
    return _read_ops(file, parse(file), Contents()).verified().ops


def op_names(file: Path) -> list[str]:
    """Return the names of the ops that a file declares, from its text alone: no statement of it is run."""
    names = []
    for function, decorator in _decorated(file, parse(file), "op", Contents()):
        given = next((k.value for k in decorator.keywords if k.arg == "name"), None)
        names.append(str(given.value) if isinstance(given, ast.Constant) else function.name)
    return names


def kernels_in(file: Path, *, backend: str = "", variant: str = "") -> list[Kernel]:
    """Return the kernels declared in a Python file."""
    return _read_kernels(file, parse(file), Contents(), backend, variant).verified().kernels


def op_of_cuda(file: Path) -> tuple[str, str, str] | None:
    """Return the op that a bare .cu file says it computes, `// assay: op FILE.py:NAME`: the declaring file, which may
    be empty, the name, and the place of the comment. None if it does not say it."""
    said = [(line, m) for line, text in _comments(cuda_text(file)) if (m := _OP_COMMENT.fullmatch(text))]
    if len({match[0] for _, match in said}) > 1:
        lines = " and on line ".join(str(line) for line, _ in said)
        raise SourceError(
            f"the op is named on line {lines}", where=str(file), fix="a .cu file computes one op: name one"
        )
    return next(((match["file"] or "", match["name"], f"{file}:{line}") for line, match in said), None)


def _comments(source: str) -> list[tuple[int, str]]:
    """Return the text of each `// assay:` comment, with its line."""
    found = ((i, _COMMENT.match(line)) for i, line in enumerate(source.splitlines(), 1))
    return [(i, match[1]) for i, match in found if match]


def kernels_in_cuda(file: Path, op: Op) -> list[Kernel]:
    """Return the kernels of a bare .cu file: its `// assay: name<T><<<grid, block>>>(arguments)` comments are the
    launches. A comment `// assay: variant NAME` above them begins another kernel; without one, the file is one kernel
    with the file's name."""
    source = cuda_text(file)
    comments = [(line, text) for line, text in _comments(source) if not _OP_COMMENT.fullmatch(text)]
    if all(_VARIANT_COMMENT.fullmatch(text) for _, text in comments):
        declared = next(iter(declared_in(source)), None)
        function = f"{op.name}<T>" if declared is None else declared.name + "<T>" * bool(declared.template)
        axis = next(iter(op.axes), "n")
        example = f"// assay: {function}<<<cdiv({axis}, 256), 256>>>({', '.join([*op.inputs, *op.outputs, *op.axes])})"
        raise SourceError(
            "no launch comment in this file", where=str(file), fix=f"say how it is launched, e.g. `{example}`"
        )
    return [
        Kernel(Address(op.name, "cuda", variant), file.resolve(), line=launches[0][0], launches=tuple(launches))
        for variant, launches in _variants(file, comments).items()
    ]


def variant_of_cuda(file: Path) -> str:
    """Return the variant of the kernel of a bare .cu file that names none."""
    return re.sub(r"\W", "_", file.stem)


def _variants(file: Path, comments: list[tuple[int, str]]) -> dict[str, list[tuple[int, str]]]:
    """Return the launches of each variant."""
    begun: dict[str, int] = {}
    variants: dict[str, list[tuple[int, str]]] = {}
    several = any(_VARIANT_COMMENT.fullmatch(text) for _, text in comments)
    name = variant_of_cuda(file)
    for line, text in comments:
        if match := _VARIANT_COMMENT.fullmatch(text):
            name, where = match[1], f"{file}:{line}"
            if name in begun:
                what = f"the variant {name} begins on line {begun[name]} and on line {line}"
                raise SourceError(what, where=where, fix="give one of them another name")
            if name == variant_of_cuda(file):
                raise SourceError(
                    f"the variant {name} has the name of the file", where=where, fix="give it another one"
                )
            begun[name] = line
        elif several and not begun:
            fix = "write `// assay: variant NAME` above this launch, too"
            raise SourceError("this launch is of no variant, and others are", where=f"{file}:{line}", fix=fix)
        else:
            variants.setdefault(name, []).append((line, text))
    if empty := [v for v in begun if v not in variants]:
        where = f"{file}:{begun[empty[0]]}"
        raise SourceError(f"the variant {empty[0]} has no launch", where=where, fix="write its launch comment below it")
    return variants


def _read_ops(file: Path, tree: ast.Module, result: Contents) -> Contents:
    """Add the ops of a file, and the errors in them, to the contents, and return the contents."""
    wanted = dict(_decorated(file, tree, "op", result))
    if not wanted:
        return result
    try:
        made = executed(file, tree, list(wanted))
    except SourceError as problem:
        made, problems = {}, []
        for one in wanted if len(wanted) > 1 else ():  # again one by one: only those that fail are refused
            try:
                made |= executed(file, tree, [one])
            except SourceError as its_problem:
                problems.append(its_problem)
        result.refused += problems or [problem]
    lines: dict[str, int] = {}
    for function, decorator in wanted.items():
        if (op := made.get(function.name)) is None:
            result.broken.add(function.name)
            continue
        line = decorator.lineno
        try:
            verify_op(op, f"{file}:{line}")
        except SourceError as problem:
            result.refused.append(problem)
            result.broken |= {function.name, op.name}
            continue
        if lines.setdefault(op.name, line) != line:
            result.ops.pop(op.name, None)
            result.broken.add(op.name)
            result.refused.append(
                SourceError(
                    f"the op {op.name} is declared on line {lines[op.name]} and on line {line}",
                    where=f"{file}:{line}",
                    fix="give one of them another name: @op(name=…)",
                )
            )
        else:
            result.ops[op.name] = op
    return result


def _read_kernels(file: Path, tree: ast.Module, result: Contents, backend: str, variant: str) -> Contents:
    """Add the kernels of a file, and the errors in them, to the contents, and return the contents."""
    lines: dict[Address, int] = {}
    library = LIBRARY in file.resolve().parents
    for node, decorator in _decorated(file, tree, "kernel", result):
        try:
            kernels = _kernels(file, tree, node, decorator, backend, variant, library)
        except SourceError as problem:
            result.refused.append(problem)
            continue
        for kernel in kernels:
            if kernel.address in lines:
                result.kernels = [k for k in result.kernels if k.address != kernel.address]
                result.refused.append(
                    SourceError(
                        f"{kernel} is defined on line {lines[kernel.address]} and again on line {kernel.line}",
                        where=f"{file}:{kernel.line}",
                        fix='tell them apart: @kernel(…, variant="other"), and two function names',
                    )
                )
            else:
                lines[kernel.address] = kernel.line
                result.kernels.append(kernel)
    return result


def _kernels(
    file: Path, tree: ast.Module, node: ast.FunctionDef, decorator: ast.Call, backend: str, variant: str, library: bool
) -> list[Kernel]:
    """Return the kernel that a function defines, and the variants that its declaration derives."""
    declared = declaration(decorator, tree, f"{file}:{decorator.lineno}")
    backend = declared.get("backend") or backend or language(file, tree, node, decorator.lineno)
    address = addressed(declared, node.name, backend, variant, library)
    arguments = node.args
    stars = [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    stars += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    if stars:
        raise SourceError(
            f"{node.name} takes {stars[0]}: which arguments it asks for is read from its signature",
            where=f"{file}:{node.lineno}",
            fix="name every parameter",
        )
    kernel = Kernel(
        address,
        file.resolve(),
        node.name,
        node.lineno,
        tune=declared.get("tune", {}),
        scratch=declared.get("scratch", {}),
        dtypes=tuple(dtype(d).name for d in declared.get("dtypes", ())),
        parameters=tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)),
        returns=declared.get("returns", False),
        needs=declared.get("needs", ""),
        prepare=declared.get("prepare", ""),
        prepares=_parameters(tree, declared.get("prepare", "")),
        requires=tuple(declared.get("requires", ())),
        most=declared.get("most", {}),
        expects=declared.get("expects", {}),
        fits=declared.get("fits", ""),
        op_file=(file.parent / declared["op"].rpartition(":")[0]).resolve() if ":" in declared["op"] else None,
    )
    variants = declared.get("variants", {})
    for name, fixed in variants.items():
        if unknown := [p for p in fixed if p not in with_default(kernel)]:
            raise SourceError(
                f"variants: '{name}' sets `{unknown[0]}`, which is no parameter of {node.name} with a default",
                where=f"{file}:{decorator.lineno}",
                fix=f"add it to the signature: def {node.name}(…, {unknown[0]}=…)",
            )
    prefix = f"{address.variant}_" if address.variant else ""
    return [
        kernel,
        *(replace(kernel, address=replace(address, variant=prefix + n), fixed=f) for n, f in variants.items()),
    ]


def _parameters(tree: ast.Module, function: str) -> tuple[str, ...]:
    """Return the names of a function's parameters; none if the file has no such function."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))
    return ()


def _decorated(file: Path, tree: ast.Module, word: str, result: Contents) -> Iterator[tuple[ast.FunctionDef, ast.Call]]:
    """Yield the functions at the top level that carry `@word(...)`; refuse it anywhere else or in another form."""
    spellings = _spellings(tree, word)

    def marks(node: ast.AST) -> ast.expr | None:
        called = node.func if isinstance(node, ast.Call) else node
        with contextlib.suppress(Exception):
            if isinstance(called, ast.Name | ast.Attribute) and ast.unparse(called) in spellings:
                return node if isinstance(node, ast.expr) else None
        return None

    def refuse(what: str, line: int, fix: str) -> None:
        result.refused.append(SourceError(what, where=f"{file}:{line}", fix=fix))

    top = set(top_level(tree.body))
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
            names = [d.func.id for d in node.decorator_list if isinstance(d, ast.Call) and isinstance(d.func, ast.Name)]
            if word in names and word not in bound:
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


def _spellings(tree: ast.Module, word: str) -> set[str]:
    """Return how the file may write Assay's `kernel` or `op`, by the names that it imports."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("assay", f"assay.{word}"):
            names |= {a.asname or a.name for a in node.names if a.name == word}
            names |= {word for a in node.names if a.name == "*"}
        elif isinstance(node, ast.Import):
            names |= {f"{a.asname or a.name}.{word}" for a in node.names if a.name == "assay"}
    return names
