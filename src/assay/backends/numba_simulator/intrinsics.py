"""Functions of the `cuda` module that the simulator gets wrong: `fma` rounds twice, `cbrt` fails for negative numbers,
`clz`, `brev`, `popc` and `ffs` assume 32 bits and no sign, `fp16.hfloor` rounds up, `fp16.hfma` rounds twice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.cuda.simulator import kernelapi

from assay.backends.numba_simulator.numbers import Int32


def patch() -> None:
    module: Any = kernelapi.FakeCUDAModule
    module.fma = lambda self, a, b, c: _fused(a, b, c)
    module.cbrt = lambda self, a: np.float32(np.cbrt(np.float64(a))) if isinstance(a, np.float32) else np.cbrt(a)
    module.popc = lambda self, value: _bits(value)[0].bit_count()
    module.clz = lambda self, value: _bits(value)[1] - _bits(value)[0].bit_length()
    module.brev = lambda self, value: _reversed(*_bits(value))
    module.ffs = lambda self, value: (_bits(value)[0] & -_bits(value)[0]).bit_length()
    half: Any = kernelapi.FakeCUDAFp16
    half.hfloor = lambda self, x: np.floor(x, dtype=np.float16)
    half.hfma = lambda self, a, b, c: np.float16(np.float32(a) * np.float32(b) + np.float32(c))


def _fused(a: Any, b: Any, c: Any) -> Any:
    if all(isinstance(v, np.float32) for v in (a, b, c)):
        return np.float32(np.float64(a) * np.float64(b) + np.float64(c))
    return a * b + c


def _bits(value: Any) -> tuple[int, int]:
    """Return an integer without its sign, and how many bits Numba gives its type (a Python integer has 64)."""
    width = 32 if isinstance(value, (np.int32, np.uint32, Int32)) else 64
    return int(value) & ((1 << width) - 1), width


def _reversed(bits: int, width: int) -> int:
    return int(f"{bits:0{width}b}"[::-1], 2)
