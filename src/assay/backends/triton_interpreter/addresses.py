"""Runs a few programs of each launch on tensors that have addresses and no contents, and finds offsets that overflow 32
bits. Nothing is read or written, so a tensor may have more elements than the machine has memory: a load gives zeros, a
store does nothing, and every address is compared with the tensors of the launch."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from triton.runtime import interpreter

from assay.backends.triton_interpreter import work

WRAPS = 1 << 32
"""Elements by which an offset of 32 bits is off once it has overflowed."""
Point = tuple[int, ...]


class Unexamined(Exception):
    """The launch cannot be judged by its addresses."""


@dataclass
class Overflow(Exception):
    """An access to an element of a tensor at an address 2³² elements away from it."""

    parameter: str
    """The kernel's parameter that is the tensor."""
    index: int
    stores: bool
    program: Point


@dataclass
class Examined:
    programs: int = 0
    """How many were run, of all launches."""


@contextmanager
def without_memory(programs: int, operations: int) -> Iterator[Examined]:
    """While open, launches run up to `programs` programs, each of at most so many operations. Raise Overflow or
    Unexamined inside Triton's InterpreterError."""
    builder: Any = interpreter.interpreter_builder
    executor: Any = interpreter.GridExecutor
    launch, restore = executor.__call__, executor._restore_args_dev
    dim, place, memory = builder.set_grid_dim, builder.set_grid_idx, interpreter._interpreter
    done = Examined()
    points: list[Point] = []
    grid: Point = ()
    nowhere = _Nowhere(memory, operations)

    def call(self: Any, *args: Any, **named: Any) -> Any:
        nonlocal grid
        tensors = dict(zip(self.arg_names, args, strict=False)) | named
        nowhere.tensors = _Tensors({n: t for n, t in tensors.items() if hasattr(t, "untyped_storage")})
        wanted = self.grid

        def few(arguments: Any) -> Point:
            nonlocal grid
            grid = tuple(int(n) for n in (wanted(arguments) if callable(wanted) else wanted))
            points[:] = chosen(grid, programs)
            return (len(points),)

        self.grid, self.pre_run_hooks = few, []  # hooks clear whole tensors
        return launch(self, *args, **named)

    def at(x: int, y: int, z: int) -> None:
        work.watch()
        nowhere.program = points[x]
        done.programs += 1
        place(*_padded(points[x], 0))

    def refuse(*values: Any) -> Any:
        raise Unexamined("it makes addresses of integers")

    builder.set_grid_dim, builder.set_grid_idx = lambda *short: dim(*_padded(grid, 1)), at
    builder.create_int_to_ptr = refuse
    executor.__call__, executor._restore_args_dev = call, lambda *arguments: None
    interpreter._interpreter = nowhere
    try:
        yield done
    finally:
        del builder.set_grid_dim, builder.set_grid_idx, builder.create_int_to_ptr  # the class has them too
        executor.__call__, executor._restore_args_dev = launch, restore
        interpreter._interpreter = memory


def chosen(grid: Point, count: int) -> list[Point]:
    """Return up to `count` programs of a grid: its corners, the last ones, and some at random."""
    total = math.prod(grid)
    if total <= count:
        return list(itertools.product(*map(range, grid)))
    corners = itertools.product(*({0, n - 1} for n in grid))
    last = (_point(total - 1 - i, grid) for i in range(4))
    rng = random.Random(total)
    others = (_point(rng.randrange(total), grid) for _ in range(count))
    return list(dict.fromkeys([*corners, *last, *others]))[:count]


def _padded(point: Point, value: int) -> Point:
    return point + (value,) * (3 - len(point))


def _point(index: int, grid: Point) -> Point:
    """Return the program with this number; the first axis counts fastest, as on a GPU."""
    found = []
    for n in grid:
        index, at = divmod(index, n)
        found.append(at)
    return tuple(found)


class _Tensors:
    """The tensors of a launch, in the order of their addresses."""

    def __init__(self, tensors: dict[str, Any]) -> None:
        found: dict[tuple[int, int], tuple[str, int]] = {}
        for name, tensor in tensors.items():
            storage = tensor.untyped_storage()
            found.setdefault((storage.data_ptr(), storage.nbytes()), (name, tensor.data_ptr()))
        ordered = sorted(found.items())
        self._edges = np.array([edge for (begin, size), _ in ordered for edge in (begin, begin + size)], np.uint64)
        self._names = [of for _, of in ordered]

    def outside(self, addresses: Any) -> Any:
        """Return the addresses that belong to no tensor."""
        return addresses[np.searchsorted(self._edges, addresses, "right") % 2 == 0]

    def element(self, addresses: Any, itemsize: int) -> tuple[str, int] | None:
        """Return a tensor that one of the addresses belongs to, by its parameter, and the element there."""
        places = np.searchsorted(self._edges, addresses, "right")
        for place, address in zip(places[places % 2 == 1], addresses[places % 2 == 1], strict=True):
            name, first = self._names[int(place) // 2]
            return name, (int(address) - first) // itemsize
        return None


class _Nowhere:
    """Replaces the module that reads and writes memory for Triton's interpreter."""

    def __init__(self, memory: Any, operations: int) -> None:
        self._memory, self._most = memory, operations
        self.tensors = _Tensors({})
        self.program: Point = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)

    def load(self, where: Any, lanes: Any, other: Any, dtype: Any) -> Any:
        self._look(where, lanes, np.dtype(dtype).itemsize, stores=False)
        return np.where(lanes, np.zeros((), dtype), other).astype(dtype, copy=False)

    def store(self, where: Any, value: Any, lanes: Any) -> None:
        self._look(where, lanes, np.asarray(value).dtype.itemsize, stores=True)

    def atomic_rmw(self, kind: Any, where: Any, value: Any, lanes: Any, order: Any) -> Any:
        self.store(where, value, lanes)
        return np.zeros_like(value)

    def atomic_cas(self, where: Any, expected: Any, value: Any, order: Any) -> Any:
        self.store(where, value, True)
        return np.zeros_like(value)

    def _look(self, where: Any, lanes: Any, itemsize: int, stores: bool) -> None:
        if work.done > self._most:
            raise Unexamined("each of its programs does too much")
        where = np.asarray(where)
        outside = self.tensors.outside(where[np.broadcast_to(lanes, where.shape)])
        for away in (WRAPS, -WRAPS) if outside.size else ():
            if found := self.tensors.element(outside + np.uint64(away * itemsize % (1 << 64)), itemsize):
                raise Overflow(*found, stores, self.program)
        if outside.size:
            raise Unexamined("it accesses addresses outside its tensors that no overflow explains")
