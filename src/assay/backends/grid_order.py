"""Runs the programs of a grid in other orders, where an interpreter runs them one after another.

A GPU guarantees no order, and runs many programs at once. `reversed` and `shuffled:SEED` expose a program that needs
another one to run first. `isolated` is the extreme of concurrency: every program sees memory as it was at the launch,
plus its own stores; all stores are applied at the end. It exposes a read-modify-write without an atomic. Programs that
use atomics may wait for each other, so from the first atomic on they run as usual."""

from __future__ import annotations

import contextlib
import math
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

Point = tuple[int, ...]


def ordered(mode: str, order: str) -> contextlib.AbstractContextManager[None]:
    """While open, grids run in `order` in the interpreter of `mode`; other modes are unaffected."""
    if mode == "triton-interpret":
        return _triton(order)
    if mode == "numba-sim":
        return _simulator(order)
    return contextlib.nullcontext()


def place_of(order: str, grid: Point) -> Callable[[Point], Point]:
    """Return a function from a program's place in the usual order to the program of `grid` that runs there."""
    kind, _, seed = order.partition(":")
    if kind == "reversed":
        return lambda point: tuple(n - 1 - p for n, p in zip(grid, point, strict=True))
    if kind == "shuffled":
        places = list(range(math.prod(grid)))
        random.Random(seed).shuffle(places)

        def shuffled(point: Point) -> Point:
            index = 0
            for n, p in zip(grid, point, strict=True):
                index = index * n + p
            index, coordinates = places[index], []
            for n in reversed(grid):
                index, p = divmod(index, n)
                coordinates.append(p)
            return tuple(reversed(coordinates))

        return shuffled
    return lambda point: point


@contextlib.contextmanager
def _triton(order: str) -> Iterator[None]:
    from triton.runtime import interpreter

    builder: Any = interpreter.interpreter_builder
    executor: Any = interpreter.GridExecutor
    original, run, memory = builder.set_grid_idx, executor.__call__, interpreter._interpreter
    log = _Stores(memory)

    def set_grid_idx(x: int, y: int, z: int) -> None:
        grid = tuple(builder.grid_dim)
        if grid not in maps:
            maps[grid] = place_of(order, grid)
        if order == "isolated":
            log.next_program()
        original(*maps[grid]((x, y, z)))

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return run(self, *args, **kwargs)
        finally:
            log.finish()

    maps: dict[Point, Callable[[Point], Point]] = {}
    builder.set_grid_idx, executor.__call__ = set_grid_idx, call
    if order == "isolated":
        interpreter._interpreter = log
    try:
        yield
    finally:
        del builder.set_grid_idx  # restores the method of the class
        executor.__call__, interpreter._interpreter = run, memory


class _Stores:
    """Replaces the module that reads and writes memory for Triton's interpreter: after each program its stores are
    undone, and at the end of the grid all are applied. Everything else is passed on to the module."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self._past: list[tuple[Any, Any, Any]] = []
        """Stores of finished programs: addresses, values, active lanes."""
        self._undo: list[tuple[Any, Any, Any]] = []
        """Previous values at the addresses that the current program stored to."""
        self._current: list[tuple[Any, Any, Any]] = []
        self._together = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)

    def store(self, where: Any, value: Any, lanes: Any) -> Any:
        import numpy as np

        if not self._together:
            value, lanes = np.array(value), np.array(lanes)
            before = self._memory.load(where, lanes, np.zeros_like(value), value.dtype)
            self._undo.append((np.array(where), before, lanes))
            self._current.append((np.array(where), value, lanes))
        return self._memory.store(where, value, lanes)

    def atomic_rmw(self, *args: Any) -> Any:
        self._share()
        return self._memory.atomic_rmw(*args)

    def atomic_cas(self, *args: Any) -> Any:
        self._share()
        return self._memory.atomic_cas(*args)

    def next_program(self) -> None:
        if not self._together:
            for entry in reversed(self._undo):
                self._memory.store(*entry)
            self._past += self._current
            self._undo, self._current = [], []

    def _share(self) -> None:
        """Apply all stores; from now on programs see each other's."""
        if not self._together:
            self._together = True
            for entry in (*self._past, *self._current):
                self._memory.store(*entry)
            self._past, self._undo, self._current = [], [], []

    def finish(self) -> None:
        self._share()
        self._together = False


@contextlib.contextmanager
def _simulator(order: str) -> Iterator[None]:
    """Reorder the blocks in Numba's simulator, and start the threads of each block in reverse."""
    from numba.cuda.simulator import kernel as simulator
    from numba.cuda.simulator import kernelapi

    manager: Any = simulator.BlockManager
    thread: Any = simulator.BlockThread
    atomics: Any = kernelapi.FakeCUDAAtomic
    run, start = manager.run, thread.__init__
    names = [n for n in vars(atomics) if not n.startswith("_")]
    originals = {n: vars(atomics)[n] for n in names}
    isolation = _Arrays()

    def run_block(self: Any, point: Point, *args: Any) -> None:
        grid = tuple(self._grid_dim)
        if order != "isolated":
            run(self, place_of(order, grid)(tuple(point)), *args)
            return
        isolation.before(args, first=not any(point))
        run(self, point, *args)
        isolation.after(last=all(p == n - 1 for p, n in zip(point, grid, strict=True)))

    def start_thread(self: Any, f: Any, its_manager: Any, block: Any, index: Point, debug: Any) -> None:
        turned = tuple(n - 1 - i for n, i in zip(its_manager._block_dim, index, strict=True))
        start(self, f, its_manager, block, turned, debug)

    def shared(original: Any) -> Any:
        def atomic(*args: Any) -> Any:
            isolation.share()
            return original(*args)

        return atomic

    manager.run, thread.__init__ = run_block, start_thread
    for name in names if order == "isolated" else ():
        setattr(atomics, name, shared(originals[name]))
    try:
        yield
    finally:
        manager.run, thread.__init__ = run, start
        for name in names:
            setattr(atomics, name, originals[name])


class _Arrays:
    """The arrays of a simulated launch; each block starts from their contents at the launch."""

    def __init__(self) -> None:
        self._arrays: list[Any] = []
        self._launch: list[Any] = []
        self._merged: list[Any] = []
        self._together = False
        self._lock = threading.Lock()

    def before(self, args: tuple[Any, ...], first: bool) -> None:
        if first:
            held = [a for a in map(_array_in, args) if a is not None and a.flags.writeable]
            self._arrays, self._together = held, False
            self._launch = [a.copy() for a in held]
            self._merged = [a.copy() for a in held]
        elif not self._together:
            for array, launch in zip(self._arrays, self._launch, strict=True):
                array[...] = launch

    def after(self, last: bool) -> None:
        if not self._together:
            self._merge()
            if last:
                self._show()

    def share(self) -> None:
        """Called at an atomic: from now on blocks see each other's stores."""
        with self._lock:
            if not self._together:
                self._merge()
                self._show()
                self._together = True

    def _merge(self) -> None:
        for array, launch, merged in zip(self._arrays, self._launch, self._merged, strict=True):
            stored = _bytes(array) != _bytes(launch)
            _bytes(merged)[stored] = _bytes(array)[stored]

    def _show(self) -> None:
        for array, merged in zip(self._arrays, self._merged, strict=True):
            array[...] = merged


def _array_in(arg: Any) -> Any:
    """Return the numpy array behind an argument that the simulator passes to a kernel; None if it is a number."""
    item = vars(arg).get("_item", arg) if hasattr(arg, "__dict__") else None
    return getattr(item, "_ary", None)


def _bytes(array: Any) -> Any:
    import numpy as np

    dense = np.ascontiguousarray(array)
    return dense.view(np.uint8).reshape(-1)
