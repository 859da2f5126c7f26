"""Shared and local memory. In the simulator all blocks of a launch share one array, which keeps the values of the last
block, and dynamic shared memory starts as zeros; on a GPU both are undefined at first. Here every block and every local
array begins with unwritten values. Two threads that ask at once get the same shared array (the simulator may give each
its own), two arrays declared on one line are two, and more than 48 KiB in all are refused, as by the compiler."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
from numba import types
from numba.cuda.simulator import kernel as simulator
from numba.cuda.simulator import kernelapi
from numba.np.numpy_support import as_dtype

from assay.backends.unwritten import unwritten

STATIC_SHARED_BYTES = 48 * 1024


def patch() -> None:
    shared: Any = kernelapi.FakeCUDAShared
    local: Any = kernelapi.FakeCUDALocal
    dynamic, lock = shared.array, threading.Lock()

    def array(self: Any, shape: Any, dtype: Any, alignment: Any = None) -> Any:
        if shape == 0:  # dynamic shared memory, one buffer for all
            return dynamic(self, shape, dtype, None)
        caller = sys._getframe(1)
        key = (caller.f_code, caller.f_lasti)
        with lock:
            if key not in self._allocations:
                self._allocations[key] = _fresh(shape, dtype)
                used = sum(a.nbytes for a in self._allocations.values())
                if used > STATIC_SHARED_BYTES:
                    raise ValueError(f"{used} bytes of shared memory in one block: {STATIC_SHARED_BYTES} at most")
            return self._allocations[key]

    def local_array(self: Any, shape: Any, dtype: Any, alignment: Any = None) -> Any:
        return _fresh(shape, dtype)

    shared.array, local.array = array, local_array
    manager: Any = simulator.BlockManager
    run = manager.run

    def run_block(self: Any, *args: Any) -> Any:
        memory = simulator._get_kernel_context()._shared
        memory._allocations.clear()
        buffer = memory._dynshared
        buffer[:] = unwritten(np.float32, (buffer.size // 4 + 1,)).view(np.byte)[: buffer.size]
        return run(self, *args)

    manager.run = run_block


def _fresh(shape: Any, dtype: Any) -> Any:
    storage = as_dtype(dtype) if isinstance(dtype, types.Type) else np.dtype(dtype)
    return unwritten(storage, shape).copy()
