"""Numba on the CPU. Kernels see numpy arrays; `load` and `store` hide that numba has no 16-bit floats there."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from assay.backends.base import Availability, Backend, Level, missing

if TYPE_CHECKING:
    import torch


FAST = {"reassoc", "contract", "arcp", "afn", "nsz"}


class Njit(Backend):
    name, title, packages = "njit", "Numba, CPU", ("numba", "llvmlite", "numpy")

    def availability(self, variant: str = "") -> Availability:
        if gone := missing(("numba", "pip install numba"), ("torch", "pip install torch")):
            return gone
        return Availability(Level.RUN, "")


@cache
def jitted(
    function: Callable[..., Any], parallel: bool = False, fastmath: bool = False, threads: int = 0, chunk: int = 0
) -> Any:
    """Compile a loop with Numba. `parallel` shares each `prange` among `threads` threads (0: all), which take `chunk`
    iterations at a time (0: an equal share each). `fastmath` allows reordered and contracted sums; NaN and Inf keep
    their meaning."""
    from numba import njit

    if threads or chunk:
        return _scheduled(jitted(function, parallel, fastmath), threads, chunk)
    return njit(parallel=parallel, fastmath=FAST if fastmath else False)(function)


def _scheduled(compiled: Any, threads: int, chunk: int) -> Callable[..., Any]:
    """Return the compiled loop, called with so many threads and iterations at a time, which are restored afterwards."""
    import numba

    def call(*arguments: Any) -> Any:
        before = numba.get_num_threads()
        if threads:
            numba.set_num_threads(min(threads, before))
        chunk_before = numba.set_parallel_chunksize(chunk)
        try:
            return compiled(*arguments)
        finally:
            numba.set_parallel_chunksize(chunk_before)
            numba.set_num_threads(before)

    return call


def arrays(*tensors: torch.Tensor | None) -> list[Any]:
    """Return torch tensors as numpy arrays on the same memory: bf16 as uint16, fp16 as int16 bits; None stays None."""
    import torch

    views = {torch.bfloat16: torch.uint16, torch.float16: torch.int16}
    return [t if t is None else t.view(views.get(t.dtype, t.dtype)).numpy() for t in tensors]


def __getattr__(name: str) -> Any:
    """Import `load` and `store` when they are first used, because they import numba."""
    if name in ("load", "store"):
        from assay.backends import njit_halves

        return getattr(njit_halves, name)
    raise AttributeError(name)


BACKEND = Njit()
