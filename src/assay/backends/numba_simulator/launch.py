"""Launches. The simulator starts blocks and grids of any size, even empty grids. A GPU refuses more than 1024 threads a
block (64 along z), more than 2³¹ − 1 × 65535 × 65535 blocks, and a grid without blocks. Options of `cuda.jit` that only
concern the compiler (`max_registers`, `lineinfo`, …) are refused by the simulator, not by Numba; here they are left
out. On a GPU Numba takes torch tensors as arrays, if it has their type, and no None; the simulator passes both on
unchanged."""

from __future__ import annotations

import sys
from typing import Any

import torch
from numba import cuda
from numba.cuda.simulator import api
from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray
from numba.cuda.simulator.kernel import FakeCUDAKernel

from assay.backends.numba_simulator import signatures
from assay.errors import UsageError

LARGEST_BLOCK, LARGEST_GRID = (1024, 1024, 64), (2**31 - 1, 65535, 65535)
_FOR_THE_COMPILER = (
    "max_registers",
    "lineinfo",
    "lto",
    "launch_bounds",
    "extensions",
    "abi",
    "abi_info",
    "forceinline",
)


def patch() -> None:
    kernel: Any = FakeCUDAKernel
    configure, call = kernel.__getitem__, kernel.__call__

    def checked(self: Any, configuration: Any) -> Any:
        configured = configure(self, configuration)
        _fitting(configured.grid_dim, configured.block_dim)
        return configured

    def launch(self: Any, *args: Any) -> Any:
        if any(a is None for a in args):
            raise UsageError(
                "None was given to a Numba kernel: on a GPU Numba cannot pass it",
                fix="pass an empty array, out.view(-1)[:0], and test its size in the kernel",
            )
        return call(self, *(_array(a) if isinstance(a, torch.Tensor) else a for a in args))

    kernel.__getitem__, kernel.__call__ = checked, launch
    sys.setswitchinterval(1e-4)  # the simulator polls its threads; with Python's 5 ms each barrier takes 10 ms
    module: Any = cuda
    original, simulated_jit = module.jit, api.jit

    def jit(*args: Any, **options: Any) -> Any:
        kept = {name: value for name, value in options.items() if name not in _FOR_THE_COMPILER}
        if args and callable(args[0]) and not isinstance(args[0], type):
            return simulated_jit(**kept)(args[0]) if kept else original(*args)  # the original drops `fastmath`
        wrapped = original(*args, **kept)
        given = args[0] if args else options.get("func_or_sig")
        return wrapped if given is None else lambda function: signatures.declared(wrapped(function), given)

    module.jit = api.jit = jit


def _array(tensor: torch.Tensor) -> Any:
    try:
        return FakeCUDAArray(tensor.numpy())
    except TypeError:
        name = str(tensor.dtype).removeprefix("torch.")
        raise UsageError(
            f"a tensor of {name} was given to a Numba kernel: Numba has no such type",
            fix="launch(kernel, grid, block, x, out) from assay.backends.numba passes its bits: see docs/languages.md",
        ) from None


def _fitting(grid: tuple[int, ...], block: tuple[int, ...]) -> None:
    threads = block[0] * block[1] * block[2]
    if threads > 1024 or any(n > most for n, most in zip(block, LARGEST_BLOCK, strict=True)):
        raise ValueError(f"a block of {block} threads: a GPU starts 1024 at most, 64 of them along z")
    if 0 in (*grid, *block) or any(n > most for n, most in zip(grid, LARGEST_GRID, strict=True)):
        raise ValueError(f"a grid of {grid} blocks of {block} threads: a GPU refuses it (CUDA_ERROR_INVALID_VALUE)")
