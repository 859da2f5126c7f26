"""GELU of LayerNorm in Numba CUDA: one block per row, read three times, sums joined in shared memory."""

import math

import numpy as np
from numba import cuda, float32

from assay import kernel
from assay.backends.numba import launch, rounded, widen


@cuda.jit
def _ln_gelu(x, weight, bias, y, eps):
    """A weight or bias that is absent comes empty."""
    r, t, threads, cols = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x, x.shape[1]
    sums = cuda.shared.array(128, float32)
    squared_sums = cuda.shared.array(128, float32)
    total = float32(0)
    for start in range(t, cols, 64 * threads):  # a long sum loses bits: sum runs, then the runs
        run = float32(0)
        for c in range(start, min(start + 64 * threads, cols), threads):
            run += widen(x[r, c])
        total += run
    sums[t] = total
    cuda.syncthreads()
    total = float32(0)
    for i in range(threads):
        total += sums[i]
    mean = total / float32(cols)
    squares = float32(0)
    for start in range(t, cols, 64 * threads):
        run = float32(0)
        for c in range(start, min(start + 64 * threads, cols), threads):
            d = widen(x[r, c]) - mean
            run += d * d
        squares += run
    squared_sums[t] = squares
    cuda.syncthreads()
    squares = float32(0)
    for i in range(threads):
        squares += squared_sums[i]
    rstd = float32(1) / math.sqrt(squares / float32(cols) + eps)
    for c in range(t, cols, threads):
        v = (widen(x[r, c]) - mean) * rstd
        if weight.size:
            v *= widen(weight[c])
        if bias.size:
            v += widen(bias[c])
        y[r, c] = rounded(y, float32(0.5) * v * (float32(1) + math.erf(v * float32(0.7071067811865476))))


@kernel("ln_gelu", tune={"threads": [32, 64, 128]})
def ln_gelu(x, weight, bias, *, eps, out, threads=32):
    threads = min(threads, x.shape[1])
    absent = out.view(-1)[:0]  # Numba cannot pass None to a CUDA kernel
    weight, bias = (absent if t is None else t for t in (weight, bias))
    launch(_ln_gelu, x.shape[0], threads, x, weight, bias, out, np.float32(eps))
