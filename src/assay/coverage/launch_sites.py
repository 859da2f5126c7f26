"""Finds the launches in a kernel's Python, and shapes that may lead to them.

A kernel chooses by lengths, strides and alignment what it launches: a warp for each row, a block for each row, several
blocks for few long rows. Constants in its source show where some of these choices change (`white_box`), but not if a
condition is on a product of lengths or inside a helper. So the kernel's Python is run without launching anything
(`assay.check.launch_sites`), first on the workloads that were tried and then on these shapes."""

from __future__ import annotations

import ast
import itertools
import random
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from assay.catalog import source
from assay.coverage.factors import Factors
from assay.coverage.row import Effort, Planned
from assay.dtype import DType
from assay.errors import AssayError
from assay.kernel import Kernel
from assay.op import Op
from assay.syntax import last_name

LANGUAGES = ("triton", "numba", "cuda")
_LAUNCHES = "launch"
"""The function that launches a Numba kernel."""
_SHORT = (2, 64)
"""Lengths of the axes beside those that grow."""
_MOST = 1200
"""The most shapes."""
_LARGEST = 1 << 28
"""The most elements of a shape: more than are tried, to tell where a launch begins."""


@dataclass(frozen=True, order=True)
class LaunchSite:
    """A launch in the source of a kernel: a call that may take several lines."""

    line: int
    last: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} (line {self.line})"


def sites(kernel: Kernel) -> tuple[LaunchSite, ...]:
    """Return the launches in a kernel's function, and in the functions of its file that it needs."""
    if kernel.address.backend not in LANGUAGES or kernel.file is None or kernel.file.suffix != ".py":
        return ()
    try:
        tree = source.parse(kernel.file)
    except AssayError:
        return ()
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    needed, todo = set(), [kernel.function]
    while todo:
        name = todo.pop()
        if name in functions and name not in needed:
            needed.add(name)
            todo += [node.id for node in ast.walk(functions[name]) if isinstance(node, ast.Name)]
    calls = (node for name in needed for node in ast.walk(functions[name]) if isinstance(node, ast.Call))
    found = {(call, name) for call in calls if (name := _launched(call))}
    return tuple(sorted({LaunchSite(call.lineno, call.end_lineno or call.lineno, name) for call, name in found}))


def _launched(call: ast.Call) -> str:
    """Return what a call launches: `kernel[grid](…)`, `source["kernel<float>"](…)` or `launch(kernel, …)`."""
    if isinstance(call.func, ast.Subscript):
        which = call.func.slice
        if isinstance(which, ast.JoinedStr) and which.values:
            which = which.values[0]
        if isinstance(which, ast.Constant) and isinstance(which.value, str):
            return which.value.partition("<")[0]
        return last_name(call.func.value)
    if last_name(call.func) == _LAUNCHES and call.args and isinstance(call.args[0], ast.Name):
        return call.args[0].id
    return ""


def shapes(op: Op, dtype: DType, effort: Effort, seed: int, omittable: Iterable[str]) -> list[Planned]:
    """Return workloads of all magnitudes, cheap ones first: each axis, and each two, grow by
    powers of two, which any block divides, and by numbers that none divides."""
    rng = random.Random(zlib.crc32(f"{op.name}/{dtype}/{seed}/launches".encode()))
    space = Factors(op, dtype, effort, rng, tuple(omittable))
    rows: dict[tuple[int, ...], Planned] = {}
    for lengths in _grown(space):
        levels = space.plain if rng.random() < 0.5 else space.random_levels({"values": "normal", **_dense(space)})
        row = space.at(lengths, levels)
        if row is not None and row.elements and space.cost(row) <= _LARGEST:
            rows[tuple(lengths.values())] = space.planned(row, "launch", levels)
    kept = rng.sample(list(rows.values()), _MOST) if len(rows) > _MOST else list(rows.values())
    return sorted(kept, key=lambda row: row.cost)


def _grown(space: Factors) -> Iterator[dict[str, int]]:
    powers = range(_LARGEST.bit_length())
    two = list(itertools.combinations(space.lengths, 2)) or [(name, name) for name in space.lengths]
    for (first, second), short in itertools.product(two, _SHORT if len(space.op.axes) > 2 else _SHORT[:1]):
        few = {n: max(short, a.min) if n in space.lengths else max(1, a.min) for n, a in space.op.axes.items()}
        for m, n in itertools.product(powers, powers if second != first else (0,)):
            if m + n < _LARGEST.bit_length():
                yield few | {second: 1 << n, first: 1 << m}
                yield few | {second: (1 << n) + 1, first: (1 << m) + 1}


def _dense(space: Factors) -> dict[str, str]:
    """Return the levels of dense tensors, for half of the shapes: most launches need them."""
    return {} if space.rng.random() < 0.5 else {n: v for n, v in space.plain.items() if n.startswith("layout")}
