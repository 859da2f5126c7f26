"""The launch comment of a bare .cu file, in CUDA's syntax:

    // assay: gelu<T><<<cdiv(n, 256), 256>>>(x, out, n)

`T` is the workload's C++ type and `type(x)` that of the tensor x; grid, block and dynamic shared memory are arithmetic
over the op's axes and attributes; arguments are the op's inputs, outputs, axes, attributes or arithmetic over them.
`stride(x, 0)`, `size(x, 0)` and `numel(x)` describe a tensor, in elements. Integers are passed as `long long` and
floats as `float`; a cast passes another type: `int(n)`, `double(eps)`. Each comment is one launch. Comments that
name the op or a variant are read by assay.catalog.reader."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from assay import syntax
from assay.backends.cuda import Source, cdiv, ctype
from assay.dtype import DType
from assay.errors import SourceError
from assay.kernel import Kernel
from assay.lazy import np
from assay.op import Op

_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"cdiv": cdiv, "min": min, "max": max}
_OF_TENSOR: dict[str, Callable[..., int]] = {
    "stride": lambda tensor, dimension: int(tensor.stride(dimension)),
    "size": lambda tensor, dimension: int(tensor.shape[dimension]),
    "numel": lambda tensor: int(tensor.numel()),
}
"""Properties of a tensor that a launch comment may use. For an optional input that is left out, each is 0."""
_CASTS = {
    "int": "int32",
    "unsigned": "uint32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "bool": "bool_",
}
"""C++ types that an argument may be cast to, and NumPy's names for them."""


@dataclass(frozen=True)
class LaunchComment:
    name: str
    configuration: tuple[ast.expr, ...]
    """Grid, block and, if given, dynamic shared memory in bytes."""
    arguments: tuple[ast.expr, ...]


def parse(text: str, where: str) -> LaunchComment:
    shape = re.fullmatch(r"(?P<name>[\w:]+(?:<.*?>)?)\s*<<<(?P<config>.+)>>>\s*\((?P<args>.*)\)\s*;?", text)
    if not shape:
        raise SourceError(
            f"this launch comment cannot be read: {text}",
            where=where,
            fix="write it as `// assay: name<T><<<grid, block>>>(x, out, n)`; `// assay: op NAME` names the op, "
            "`// assay: variant NAME` a design",
        )
    config, args = (_expressions(shape[part], where) for part in ("config", "args"))
    if not 2 <= len(config) <= 3:
        raise SourceError(
            "a launch needs <<<grid, block>>> or <<<grid, block, shared bytes>>>",
            where=where,
            fix="leave the stream out: the kernel is launched on the current one",
        )
    return LaunchComment(shape["name"], config, args)


def evaluate(node: ast.expr, names: Mapping[str, Any], where: str) -> Any:
    """Evaluate integer arithmetic over `names`. Division rounds down, which for positive numbers is what C++ does."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise SourceError(
                f"the launch comment names '{node.id}', which the op does not have",
                where=where,
                fix=f"it has: {', '.join(names)}; for work space, launch the kernel from Python (docs/languages.md)",
            )
        return names[node.id]
    if isinstance(node, ast.Tuple):
        return tuple(evaluate(e, names, where) for e in node.elts)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](evaluate(node.left, names, where), evaluate(node.right, names, where))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](evaluate(node.operand, names, where))
    called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    if isinstance(node, ast.Call) and called in (*_FUNCTIONS, *_OF_TENSOR, *_CASTS) and node.args:
        given = [evaluate(a, names, where) for a in node.args]
        if called in _FUNCTIONS:
            return _FUNCTIONS[called](*given)
        if called in _OF_TENSOR:
            return 0 if given[0] is None else _tensor_property(node, called, given, where)
        if len(given) == 1:
            return _cast(node, called, given[0], where)
    raise SourceError(
        f"the launch comment may not say `{ast.unparse(node)}`",
        where=where,
        fix="use + - * / % << >>, cdiv(a, b), min, max over axes and attributes, "
        "stride(x, 0), size(x, 0), numel(x) of tensors, and casts such as int(n)",
    )


def _cast(node: ast.Call, name: str, value: Any, where: str) -> Any:
    """Return the value as a NumPy scalar of that type, which a launch passes unchanged."""
    if not isinstance(value, (int, float, np.generic)):
        raise SourceError(f"the launch comment's `{ast.unparse(node)}` casts what is no number", where=where)
    try:
        return getattr(np, _CASTS[name])(value)
    except OverflowError:
        raise SourceError(
            f"the launch comment's `{ast.unparse(node)}` cannot hold {value}",
            where=where,
            fix="let the kernel take a long long, and leave the cast out",
        ) from None


def _tensor_property(node: ast.Call, name: str, given: list[Any], where: str) -> int:
    try:
        return _OF_TENSOR[name](*given)
    except (AttributeError, IndexError, TypeError):
        raise SourceError(
            f"the launch comment's `{ast.unparse(node)}` asks what the tensor does not have",
            where=where,
            fix="write stride(x, 0), size(x, 0) or numel(x), counting dimensions from 0",
        ) from None


def instance(name: str, names: Mapping[str, Any], dtype: DType, where: str) -> str:
    """Return the kernel's name with the C++ types of this workload: `T`, and `type(x)` for a tensor's own."""

    def tensor_type(match: re.Match[str]) -> str:
        if not hasattr(names.get(match[1]), "dtype"):
            tensors = ", ".join(n for n, v in names.items() if hasattr(v, "dtype"))
            raise SourceError(
                f"the launch comment says type({match[1]}), which is no tensor of the op",
                where=where,
                fix=f"it has: {tensors}",
            )
        return ctype(names[match[1]])

    return re.sub(r"\bT\b", dtype.ctype, re.sub(r"\btype\((\w+)\)", tensor_type, name))


def launcher(kernel: Kernel, op: Op, dtype: DType) -> Callable[..., None]:
    """Return a kernel function that starts the launches of a bare .cu file."""
    assert kernel.file is not None
    source = Source(kernel.file)
    launches = [(parse(text, f"{kernel.file}:{line}"), f"{kernel.file}:{line}") for line, text in kernel.launches]

    def run(*tensors: Any, **named: Any) -> None:
        names = dict(zip(op.inputs, tensors, strict=True)) | named | {"itemsize": dtype.itemsize}
        for launch, where in launches:
            grid, block, *shared = (evaluate(e, names, where) for e in launch.configuration)
            arguments = [evaluate(e, names, where) for e in launch.arguments]
            source[instance(launch.name, names, dtype, where)](
                grid, block, *arguments, shared=shared[0] if shared else 0, where=where
            )

    return run


def _expressions(text: str, where: str) -> tuple[ast.expr, ...]:
    try:
        parsed = syntax.expression(f"({text},)" if text.strip() else "()")
    except SyntaxError:
        raise SourceError(
            f"this part of the launch comment cannot be read: {text}",
            where=where,
            fix="write arithmetic over axes and attributes; a cast is int(n), and all of it stands on one line",
        ) from None
    assert isinstance(parsed, ast.Tuple)
    return tuple(parsed.elts)
