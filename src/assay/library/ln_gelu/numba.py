"""GELU of LayerNorm in Numba CUDA: one block per row, sums joined through shared memory; the row is read three times."""

import math

import numpy as np
from numba import cuda, float32

from assay import kernel
from assay.backends.numba import launch, rounded, widen


@cuda.jit(device=True)
def _block_sum(value, shared):
    t = cuda.threadIdx.x
    cuda.syncthreads()  # the last call's readers are done
    shared[t] = value
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half:
        if t < half:
            shared[t] += shared[t + half]
        cuda.syncthreads()
        half //= 2
    return shared[0]


@cuda.jit
def _ln_gelu(x, weight, bias, y, eps):
    """A weight or bias that is absent comes empty."""
    r, t, threads, cols = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x, x.shape[1]
    shared = cuda.shared.array(256, float32)
    total = float32(0)
    for c in range(t, cols, threads):
        total += widen(x[r, c])
    mean = _block_sum(total, shared) / float32(cols)
    squares = float32(0)
    for c in range(t, cols, threads):
        d = widen(x[r, c]) - mean
        squares += d * d
    rstd = float32(1) / math.sqrt(_block_sum(squares, shared) / float32(cols) + eps)
    for c in range(t, cols, threads):
        v = (widen(x[r, c]) - mean) * rstd
        if weight.size:
            v *= widen(weight[c])
        if bias.size:
            v += widen(bias[c])
        y[r, c] = rounded(y, float32(0.5) * v * (float32(1) + math.erf(v * float32(0.7071067811865476))))


@kernel("ln_gelu", tune={"threads": [32, 64, 128, 256]})
def ln_gelu(x, weight, bias, *, eps, out, threads=64):
    # Numba cannot pass None to a CUDA kernel.
    absent = out.view(-1)[:0]
    weight, bias = (absent if t is None else t for t in (weight, bias))
    launch(_ln_gelu, x.shape[0], threads, x, weight, bias, out, np.float32(eps))
