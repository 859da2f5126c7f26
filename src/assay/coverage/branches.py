"""Finds branches of a launch: comparisons of an axis of the op with a number, in the kernel's own function.

`rows, cols = x.shape` names axes, and so do `x.shape[1]`, `x.size(1)` and `x.numel()`. A number is a literal or a
parameter with a default. Two such comparisons on different axes make a path that no size of one axis alone reaches."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from assay.catalog import source
from assay.coverage.constants import Bound, defaults, folded
from assay.errors import AssayError
from assay.kernel import Kernel
from assay.op import Op

_LONGEST = 1 << 22


def bounds(kernel: Kernel, op: Op) -> tuple[Bound, ...]:
    """Every such comparison once, in the order of the function."""
    if kernel.file is None or kernel.file.suffix != ".py":
        return ()
    function = _function(kernel.file, kernel.function)
    if function is None:
        return ()
    reader = _Reader(function, op)
    return tuple(dict.fromkeys(b for b in reader.bounds() if 3 <= b.size <= _LONGEST))


@cache
def _function(file: Path, name: str) -> ast.FunctionDef | None:
    try:
        tree = source.parse(file)
    except AssayError:
        return None
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name)
    return next(functions, None)


class _Reader:
    def __init__(self, function: ast.FunctionDef, op: Op) -> None:
        self._function, self._op = function, op
        self._numbers = {name: _integer(default) for name, default in defaults(function.args)}
        self._axes: dict[str, str] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._bind(target, node.value)

    def bounds(self) -> Iterator[Bound]:
        for node in ast.walk(self._function):
            if isinstance(node, ast.Compare) and len(node.ops) == 1:
                left, right = node.left, node.comparators[0]
                for length, number in ((left, right), (right, left)):
                    axis, size = self._axis(length), self._number(number)
                    if axis and size is not None:
                        yield Bound(axis, size)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        """Records the names that an assignment gives to lengths of axes."""
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, its in zip(target.elts, value.elts, strict=True):
                self._bind(one, its)
        elif isinstance(target, ast.Tuple) and (shape := self._shape(value)) is not None:
            for one, axis in zip(target.elts, shape, strict=False):
                if isinstance(one, ast.Name) and axis in self._op.axes:
                    self._axes[one.id] = axis
        elif isinstance(target, ast.Name) and (axis := self._axis(value)):
            self._axes[target.id] = axis

    def _shape(self, value: ast.expr) -> tuple[str, ...] | None:
        """The axes of the tensor `x`, given `x.shape` or `x.size()`."""
        if isinstance(value, ast.Call) and not value.args:
            value = value.func
        if not isinstance(value, ast.Attribute) or value.attr not in ("shape", "size"):
            return None
        tensor = self._tensor(value.value)
        return tuple(str(d) for d in tensor) if tensor is not None else None

    def _tensor(self, value: ast.expr) -> tuple[str | int, ...] | None:
        tensors = {**self._op.inputs, **self._op.outputs}
        return tensors[value.id].shape if isinstance(value, ast.Name) and value.id in tensors else None

    def _axis(self, value: ast.expr) -> str:
        """The axis whose length the expression is; empty if it is not a length."""
        if isinstance(value, ast.Name):
            return self._axes.get(value.id) or (value.id if value.id in self._op.axes else "")
        shape: tuple[str, ...] | None = None
        index: ast.expr | None = None
        if isinstance(value, ast.Subscript):
            shape, index = self._shape(value.value), value.slice
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if value.func.attr == "size" and len(value.args) == 1:
                shape, index = self._shape(value.func), value.args[0]
            elif value.func.attr == "numel":
                whole = self._tensor(value.func.value)
                return str(whole[0]) if whole is not None and len(whole) == 1 else ""
        place = folded(index) if index is not None else None
        if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
            inner = folded(index.operand)
            place = -inner if isinstance(inner, int) else None
        if shape is None or not isinstance(place, int) or not -len(shape) <= place < len(shape):
            return ""
        return shape[place] if shape[place] in self._op.axes else ""

    def _number(self, value: ast.expr) -> int | None:
        return self._numbers.get(value.id) if isinstance(value, ast.Name) else _integer(value)


def _integer(value: ast.expr) -> int | None:
    number = folded(value)
    return number if isinstance(number, int) and not isinstance(number, bool) else None
