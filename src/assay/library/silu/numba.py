"""SiLU in Numba CUDA: one element per thread."""

import math

from numba import cuda, float32

from assay import kernel
from assay.backends.numba import launch, rounded, widen


@cuda.jit
def _silu(x, y):
    i = cuda.grid(1)
    if i < x.size:
        v = widen(x[i])
        e = math.exp(-abs(v))  # at most 1: the simulator's exp raises where the GPU's overflows to infinity
        y[i] = rounded(y, v * (float32(1) if v >= 0 else e) / (float32(1) + e))


@kernel("silu", tune={"threads": [64, 128, 256]})
def silu(x, *, out, threads=128):
    launch(_silu, -(-x.numel() // threads), threads, x, out)
