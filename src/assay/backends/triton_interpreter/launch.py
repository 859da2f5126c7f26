"""Launches that a GPU refuses and the interpreter does not: a grid beyond 2³¹ − 1 × 65535 × 65535 programs, an option
that neither Triton nor the kernel has, a `num_warps` that is not a power of two or exceeds 32."""

from __future__ import annotations

import inspect
import math
from typing import Any

from triton.runtime import interpreter

from assay.backends.base import TOO_MANY
from assay.backends.triton_interpreter import work
from assay.errors import AssayError

LARGEST_GRID = (2**31 - 1, 65535, 65535)
most = 1 << 62
"""The most programs of one launch. Each takes about a millisecond here, so a check sets a lower limit."""


def patch() -> None:
    executor: Any = interpreter.GridExecutor
    call, known = executor.__call__, _options()

    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        parameters = inspect.signature(self.fn).parameters
        for name in kwargs:
            if known and name not in parameters and name not in known:
                raise KeyError(f"Keyword argument {name} was specified but unrecognised")
        warps = kwargs.get("num_warps", 4)
        if "num_warps" not in parameters and warps is not None and warps not in (1, 2, 4, 8, 16, 32):
            raise ValueError(f"num_warps must be a power of 2 and at most 32, not {warps}")
        grid = self.grid
        if callable(grid):
            self.grid = lambda arguments: _fitting(grid(arguments))
        else:
            self.grid = _fitting(grid)
        return call(self, *args, **kwargs)

    executor.__call__ = checked


def _options() -> frozenset[str]:
    try:
        from triton.backends.nvidia.compiler import CUDAOptions
    except ImportError:
        return frozenset()
    return frozenset(CUDAOptions.__dataclass_fields__) | {"warmup", "grid", "stream", "device", "device_type"}


def _fitting(grid: Any) -> Any:
    for axis, (size, largest) in enumerate(zip(grid, LARGEST_GRID, strict=False)):
        if int(size) > largest:
            raise ValueError(f"a grid of {tuple(int(n) for n in grid)}: axis {axis} holds {largest} programs at most")
    if (programs := math.prod(int(n) for n in grid)) > most:
        raise AssayError(
            f"{programs} programs in one launch are {TOO_MANY}", fix="check it on a GPU, or with --thorough"
        )
    work.launched(programs)
    return grid
