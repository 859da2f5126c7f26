"""Finds branches of a launch: comparisons of an axis of the op with a number, in the kernel's own function or in the
launch comments of a .cu file.

`rows, cols = x.shape` names axes, and so do `x.shape[1]`, `x.size(1)` and `x.numel()`. A number is a literal, a
constant, a parameter with a default, either value of `8 if few else 16`, or a product of these. Two such comparisons on
different axes form a path that one long axis alone does not reach. A grid with a limit, such as
`min(cdiv(rows, 8), 65535)`, is a branch too: with more than 8 · 65535 rows a block goes on to further rows, in a loop
that runs only once on shorter axes."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from assay.backends import launch_comment
from assay.catalog import source
from assay.coverage.constants import ROUNDED_UP, Bound, assigned, defaults, folded
from assay.errors import AssayError
from assay.kernel import Kernel
from assay.op import Op
from assay.syntax import last_name

_LONGEST = 1 << 22
_DEEPEST, _MOST_VALUES = 8, 8
"""How deep expressions of numbers are read, and how many values one may have."""


@dataclass(frozen=True)
class _Length:
    """The length of an axis, or how many blocks of `block` elements it has."""

    axis: str
    block: int = 1


def bounds(kernel: Kernel, op: Op) -> tuple[Bound, ...]:
    """Return every comparison of an axis with a number once, in the order of the function or of the launch comments."""
    if kernel.file is None:
        return ()
    try:
        if kernel.file.suffix == ".py":
            reader = _of_function(source.parse(kernel.file), kernel.function, op)
        else:
            comments = [launch_comment.parse(text, f"{kernel.file}:{line}") for line, text in kernel.launches]
            reader = _Reader([e for comment in comments for e in comment.configuration], {}, op)
    except AssayError:
        return ()
    return tuple(dict.fromkeys(b for b in reader.bounds() if 3 <= b.size <= _LONGEST))


def _of_function(tree: ast.Module, name: str, op: Op) -> _Reader:
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name)
    function = next(functions, None)
    if function is None:
        return _Reader([], {}, op)
    own = [node for node in ast.walk(function) if isinstance(node, ast.stmt)]
    return _Reader([function], assigned(tree.body) | assigned(own) | dict(defaults(function.args)), op)


class _Reader:
    def __init__(self, nodes: Sequence[ast.AST], constants: Mapping[str, ast.expr], op: Op) -> None:
        self._nodes, self._op = [n for node in nodes for n in ast.walk(node)], op
        self._constants = constants
        self._lengths: dict[str, tuple[_Length, ...]] = {}
        for node in self._nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._bind(target, node.value)

    def bounds(self) -> Iterator[Bound]:
        for node in self._nodes:
            if isinstance(node, ast.Compare) and len(node.ops) == 1:
                sides = [node.left, node.comparators[0]]
            elif isinstance(node, ast.Call) and last_name(node.func) == "min":
                sides = node.args
            else:
                continue
            for one, other in itertools.permutations(sides, 2):
                for length, number in itertools.product(self._length(one), self._numbers(other)):
                    yield Bound(length.axis, number * length.block)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        """Record the names that an assignment gives to lengths of axes."""
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, its in zip(target.elts, value.elts, strict=True):
                self._bind(one, its)
        elif isinstance(target, ast.Tuple) and (shape := self._shape(value)) is not None:
            for one, axis in zip(target.elts, shape, strict=False):
                if isinstance(one, ast.Name) and axis in self._op.axes:
                    self._lengths[one.id] = (_Length(axis),)
        elif isinstance(target, ast.Name) and (length := self._length(value)):
            self._lengths[target.id] = length

    def _shape(self, value: ast.expr) -> tuple[str, ...] | None:
        """Return the axes of the tensor `x` if the expression is `x.shape` or `x.size()`."""
        if isinstance(value, ast.Call) and not value.args:
            value = value.func
        if not isinstance(value, ast.Attribute) or value.attr not in ("shape", "size"):
            return None
        tensor = self._tensor(value.value)
        return tuple(str(d) for d in tensor) if tensor is not None else None

    def _tensor(self, value: ast.expr) -> tuple[str | int, ...] | None:
        tensors = {**self._op.inputs, **self._op.outputs}
        return tensors[value.id].shape if isinstance(value, ast.Name) and value.id in tensors else None

    def _length(self, value: ast.expr) -> tuple[_Length, ...]:
        """Return the length of an axis that the expression is, in elements or in blocks, once for each block length
        that it may have; nothing if it is neither."""
        if isinstance(value, ast.Name) and value.id in self._lengths:
            return self._lengths[value.id]
        if axis := self._axis(value):
            return (_Length(axis),)
        if isinstance(value, ast.Call) and len(value.args) == 2 and last_name(value.func) in ROUNDED_UP:
            whole, by = value.args
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.FloorDiv):
            whole, by = value.left, value.right
            while isinstance(whole, ast.BinOp) and isinstance(whole.op, ast.Add | ast.Sub):  # (n + 8 - 1) // 8
                whole = whole.left
        elif isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):  # -(-n // 8)
            inner = value.operand
            if not (isinstance(inner, ast.BinOp) and isinstance(inner.left, ast.UnaryOp)):
                return ()
            return self._length(ast.BinOp(inner.left.operand, inner.op, inner.right))
        else:
            return ()
        blocks = itertools.product(self._length(whole), self._numbers(by))
        return tuple(_Length(length.axis, length.block * block) for length, block in blocks if block > 0)

    def _axis(self, value: ast.expr) -> str:
        """The axis whose length the expression is; empty if it is not a length."""
        if isinstance(value, ast.Name):
            return value.id if value.id in self._op.axes else ""
        shape: tuple[str, ...] | None = None
        index: ast.expr | None = None
        if isinstance(value, ast.Subscript):
            shape, index = self._shape(value.value), value.slice
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if value.func.attr == "size" and len(value.args) == 1:
                shape, index = self._shape(value.func), value.args[0]
            elif value.func.attr == "numel":
                whole = self._tensor(value.func.value) or ()
                shape, index = (str(whole[0]),) if len(whole) == 1 else None, ast.Constant(0)
        place = folded(index) if index is not None else None
        if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
            inner = folded(index.operand)
            place = -inner if isinstance(inner, int) else None
        if shape is None or not isinstance(place, int) or not -len(shape) <= place < len(shape):
            return ""
        return shape[place] if shape[place] in self._op.axes else ""

    def _numbers(self, value: ast.expr, depth: int = 0) -> tuple[int, ...]:
        """Return the integers that an expression may be; nothing if they are unknown or too many."""
        number = folded(value)
        if number is not None:
            return (number,) if isinstance(number, int) and not isinstance(number, bool) else ()
        if depth == _DEEPEST:
            return ()
        if isinstance(value, ast.Name):
            return self._numbers(self._constants[value.id], depth + 1) if value.id in self._constants else ()
        if isinstance(value, ast.IfExp):
            either = [*self._numbers(value.body, depth + 1), *self._numbers(value.orelse, depth + 1)]
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
            sides = [self._numbers(side, depth + 1) for side in (value.left, value.right)]
            either = [a * b for a, b in itertools.product(*sides)]
        else:
            return ()
        return tuple(dict.fromkeys(either)) if len(either) <= _MOST_VALUES else ()
