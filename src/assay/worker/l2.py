"""Inside a worker: the part of the GPU's L2 cache that a process may set aside for persisting lines. They are not cold,
so nothing is set aside while a kernel is timed."""

from __future__ import annotations

import ctypes

_PERSISTING = 6
"""CU_LIMIT_PERSISTING_L2_CACHE_SIZE."""

try:
    _driver: ctypes.CDLL | None = ctypes.CDLL("libcuda.so.1")
except OSError:
    _driver = None


def set_aside() -> int:
    """Return the bytes of the current context's L2 that are set aside; 0 if the driver does not say."""
    size = ctypes.c_size_t()
    if _driver is None or _driver.cuCtxGetLimit(ctypes.byref(size), _PERSISTING):
        return 0
    return size.value


def reset() -> None:
    """Set nothing aside from now on, and release persisting lines. If nothing is set aside, a stream's access policy
    window has no effect."""
    if _driver is not None and set_aside():
        _driver.cuCtxResetPersistingL2Cache()
        _driver.cuCtxSetLimit(_PERSISTING, ctypes.c_size_t(0))
