"""Inside a worker: the part of the GPU's L2 cache that a process may set aside for lines that stay. What stays there is
not cold, so nothing is set aside while a kernel is timed."""

from __future__ import annotations

import ctypes

_PERSISTING = 6
"""CU_LIMIT_PERSISTING_L2_CACHE_SIZE."""

try:
    _driver: ctypes.CDLL | None = ctypes.CDLL("libcuda.so.1")
except OSError:
    _driver = None


def set_aside() -> int:
    """Bytes of the current context's L2 that are set aside; 0 where the driver does not tell."""
    size = ctypes.c_size_t()
    if _driver is None or _driver.cuCtxGetLimit(ctypes.byref(size), _PERSISTING):
        return 0
    return size.value


def reset() -> None:
    """Nothing is set aside from now on, and what was kept is kept no longer. Without room set aside, a stream's access
    policy window has no effect."""
    if _driver is not None and set_aside():
        _driver.cuCtxResetPersistingL2Cache()
        _driver.cuCtxSetLimit(_PERSISTING, ctypes.c_size_t(0))
