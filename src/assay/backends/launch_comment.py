"""The launch comment of a bare .cu file, in CUDA's own words:

    // assay: gelu<T><<<cdiv(n, 256), 256>>>(x, out, n)

`T` is the workload's C++ type; grid, block and dynamic shared memory are arithmetic over the op's axes and attributes;
arguments are the op's inputs, outputs, axes, attributes or arithmetic over them. Several comments: several launches."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from assay.backends.cuda import Source, cdiv
from assay.dtype import DType
from assay.errors import SourceError
from assay.kernel import Kernel
from assay.op import Op

_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv, ast.Mod: operator.mod, ast.USub: operator.neg, ast.Pow: operator.pow,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {"cdiv": cdiv, "min": min, "max": max}


@dataclass(frozen=True)
class LaunchComment:
    name: str
    configuration: tuple[ast.expr, ...]
    """Grid, block and, if given, dynamic shared memory in bytes."""
    arguments: tuple[ast.expr, ...]


def parse(text: str, where: str) -> LaunchComment:
    shape = re.fullmatch(r"(?P<name>[\w:]+(?:<.*?>)?)\s*<<<(?P<config>.+)>>>\s*\((?P<args>.*)\)\s*;?", text)
    if not shape:
        raise SourceError(f"this launch comment cannot be read: {text}", where=where,
                          fix="write it as `// assay: name<T><<<grid, block>>>(x, out, n)`")  # fmt: skip
    config, args = (_expressions(shape[part], where) for part in ("config", "args"))
    if not 2 <= len(config) <= 3:
        raise SourceError("a launch needs <<<grid, block>>> or <<<grid, block, shared bytes>>>", where=where)
    return LaunchComment(shape["name"], config, args)


def evaluate(node: ast.expr, names: Mapping[str, Any], where: str) -> Any:
    """Integer arithmetic over `names`; division rounds down, as in C++."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise SourceError(f"the launch comment names '{node.id}', which the op does not have", where=where,
                              fix=f"it has: {', '.join(names)}")  # fmt: skip
        return names[node.id]
    if isinstance(node, ast.Tuple):
        return tuple(evaluate(e, names, where) for e in node.elts)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](evaluate(node.left, names, where), evaluate(node.right, names, where))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](evaluate(node.operand, names, where))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        return _FUNCTIONS[node.func.id](*(evaluate(a, names, where) for a in node.args))
    raise SourceError(f"the launch comment may not say `{ast.unparse(node)}`", where=where,
                      fix="use + - * / % << >>, cdiv(a, b), min, max over axes and attributes")  # fmt: skip


def launcher(kernel: Kernel, op: Op, dtype: DType) -> Callable[..., None]:
    """A kernel function that starts the launches of a bare .cu file."""
    assert kernel.file is not None
    source = Source(kernel.file)
    launches = [(parse(text, f"{kernel.file}:{line}"), f"{kernel.file}:{line}") for line, text in kernel.launches]

    def run(*tensors: Any, **named: Any) -> None:
        names = dict(zip(op.inputs, tensors, strict=True)) | named | {"itemsize": dtype.itemsize}
        for launch, where in launches:
            instance = re.sub(r"\bT\b", dtype.ctype, launch.name)
            grid, block, *shared = (evaluate(e, names, where) for e in launch.configuration)
            arguments = [evaluate(e, names, where) for e in launch.arguments]
            source[instance](grid, block, *arguments, shared=shared[0] if shared else 0)

    return run


def _expressions(text: str, where: str) -> tuple[ast.expr, ...]:
    try:
        parsed = ast.parse(f"({text},)" if text.strip() else "()", mode="eval").body
    except SyntaxError:
        raise SourceError(f"this part of the launch comment cannot be read: {text}", where=where) from None
    assert isinstance(parsed, ast.Tuple)
    return tuple(parsed.elts)
