"""From what a user names (an op, an address, a pattern, a file, a function) to kernels and their ops."""

from __future__ import annotations

import fnmatch
import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from assay import library
from assay.errors import SourceError, UsageError
from assay.kernel import Address, Kernel
from assay.library.reader import kernels_in, kernels_in_cuda, ops_in
from assay.op import Op

Choice = tuple[Kernel, Op]


def select(what: Iterable[str | Path | Callable[..., Any]], op: str | None = None) -> list[Choice]:
    """The kernels named, in the order named, without repeats."""
    found: dict[tuple[Address, Path | None], Choice] = {}
    for item in what:
        chosen = (
            _of_function(item)
            if callable(item)
            else _of_file(Path(item), op)
            if _is_file(str(item))
            else _of_name(str(item))
        )
        for kernel, its_op in chosen:
            verify_signature(kernel, its_op)
            found.setdefault((kernel.address, kernel.file), _narrowed(kernel, its_op))
    return list(found.values())


def everything() -> list[Choice]:
    return [_narrowed(k, library.ops()[k.address.op]) for k in library.kernels()]


def _narrowed(kernel: Kernel, op: Op) -> Choice:
    return kernel, op.narrowed(kernel.requires, kernel.most)


def _is_file(text: str) -> bool:
    return text.endswith((".py", ".cu")) or (Path(text).is_file() and "/" in text)


def _of_name(name: str) -> list[Choice]:
    if name in library.ops():
        return [(k, library.ops()[name]) for k in library.kernels() if k.address.op == name]
    matching = [(k, library.ops()[k.address.op]) for k in library.kernels() if fnmatch.fnmatch(k.name, name)]
    if matching:
        return matching
    if "/" not in name:
        library.find_op(name)
    near = get_close_matches(name, [k.name for k in library.kernels()], n=3)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise UsageError(f"no kernel called '{name}'", fix=f"{hint}`assay list` shows them all")


def _of_file(file: Path, op: str | None) -> list[Choice]:
    if file.suffix == ".cu":
        if op is None:
            raise UsageError(f"{file}: which op does it compute?", fix=f"assay check {file} --op gelu")
        return [(k, library.find_op(op)) for k in kernels_in_cuda(file, op)]
    own = ops_in(file)
    kernels = kernels_in(file)
    if not kernels:
        raise SourceError(
            "no kernel in this file", where=str(file), fix='mark one with @kernel("gelu"); see docs/first-kernel.md'
        )
    choices = []
    for kernel in kernels:
        name = kernel.address.op
        if name not in own and name not in library.ops():
            near = get_close_matches(name, [*own, *library.ops()], n=3)
            hint = f"did you mean {' or '.join(near)}? " if near else ""
            raise SourceError(
                f"no op called '{name}'",
                where=f"{file}:{kernel.line}",
                fix=f"{hint}Or declare it in the same file with @op",
            )
        choices.append((kernel, own.get(name) or library.ops()[name]))
    return choices


def _of_function(function: Callable[..., Any]) -> list[Choice]:
    if not hasattr(function, "__assay__"):
        raise UsageError(
            f"{getattr(function, '__name__', function)} is not marked as a kernel", fix='put @kernel("gelu") above it'
        )
    file = Path(inspect.getsourcefile(inspect.unwrap(function)) or "")
    found = [c for c in _of_file(file, None) if c[0].function == function.__name__]
    if not found:
        raise SourceError(
            f"{function.__name__} is not at the top level of its file",
            where=str(file),
            fix="a worker must be able to import it: move it there",
        )
    return found


def verify_signature(kernel: Kernel, op: Op) -> None:
    """Does the kernel take what the op gives?"""
    if kernel.file is None or kernel.launches:
        return
    where = f"{kernel.file}:{kernel.line}"
    offered = {*op.inputs, *op.outputs, *op.attributes, *kernel.scratch, *kernel.tune}
    call = f"def {kernel.function}({', '.join(op.inputs)}, *, {', '.join([*op.attributes, *op.outputs])})"
    inputs = kernel.parameters[: len(op.inputs)]
    if len(kernel.parameters) < len(op.inputs) or set(inputs) & set(op.outputs):
        raise SourceError(
            f"{op.name} has {len(op.inputs)} inputs ({', '.join(op.inputs)}); "
            f"{kernel.function} takes ({', '.join(kernel.parameters)})",
            where=where,
            fix=f"write it as {call}",
        )
    for name, t in op.outputs.items():
        if not t.optional and not kernel.returns and name not in kernel.parameters:
            raise SourceError(
                f"{kernel.function} does not take the output `{name}`",
                where=where,
                fix=f"write it as {call}, or declare returns=True",
            )
    unknown = [p for p in kernel.parameters[len(op.inputs) :] if p not in offered and p not in _tunable(kernel)]
    if unknown:
        raise SourceError(
            f"{kernel.function} asks for `{unknown[0]}`, which {op.name} does not give",
            where=where,
            fix=f"it gives: {', '.join(sorted(offered))}",
        )


def _tunable(kernel: Kernel) -> set[str]:
    """Parameters with a default may be anything: launch parameters need not be tunable."""
    import ast

    assert kernel.file is not None
    from assay.library.reader import parse

    for node in ast.walk(parse(kernel.file)):
        if isinstance(node, ast.FunctionDef) and node.name == kernel.function and node.lineno == kernel.line:
            a = node.args
            plain = [*a.posonlyargs, *a.args]
            return {p.arg for p in plain[len(plain) - len(a.defaults) :]} | {
                p.arg for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None
            }
    return set()
