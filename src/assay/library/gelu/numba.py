"""GELU in Numba CUDA: one element per thread."""

import math

from numba import cuda

from assay import kernel
from assay.backends.numba import launch, rounded, widen


@cuda.jit
def _gelu(x, y):
    i = cuda.grid(1)
    if i < x.size:
        v = widen(x[i])
        y[i] = rounded(y, 0.5 * v * (1.0 + math.erf(v * 0.7071067811865476)))


@cuda.jit
def _gelu_tanh(x, y):
    i = cuda.grid(1)
    if i < x.size:
        v = widen(x[i])
        y[i] = rounded(y, 0.5 * v * (1.0 + math.tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))))


@kernel("gelu", tune={"threads": [64, 128, 256]})
def gelu(x, *, out, threads=128):
    launch(_gelu, -(-x.numel() // threads), threads, x, out)


@kernel("gelu_tanh", tune={"threads": [64, 128, 256]})
def gelu_tanh(x, *, out, threads=128):
    launch(_gelu_tanh, -(-x.numel() // threads), threads, x, out)
