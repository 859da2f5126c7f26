"""LayerNorm in Numba CUDA: one block per row, read three times, sums joined in shared memory."""

import math

import numpy as np
from numba import cuda, float32

from assay import kernel
from assay.backends.numba import launch, rounded, widen


@cuda.jit
def _layernorm(x, weight, bias, y, mean, rstd, eps):
    """Tensors that are absent come empty."""
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
    mu = total / float32(cols)
    squares = float32(0)
    for start in range(t, cols, 64 * threads):
        run = float32(0)
        for c in range(start, min(start + 64 * threads, cols), threads):
            d = widen(x[r, c]) - mu
            run += d * d
        squares += run
    squared_sums[t] = squares
    cuda.syncthreads()
    squares = float32(0)
    for i in range(threads):
        squares += squared_sums[i]
    scale = float32(1) / math.sqrt(squares / float32(cols) + eps)
    for c in range(t, cols, threads):
        v = (widen(x[r, c]) - mu) * scale
        if weight.size:
            v *= widen(weight[c])
        if bias.size:
            v += widen(bias[c])
        y[r, c] = rounded(y, v)
    if t == 0:
        if mean.size:
            mean[r] = mu
        if rstd.size:
            rstd[r] = scale


@kernel("layernorm", tune={"threads": [32, 64, 128]})
def layernorm(x, weight, bias, *, eps, out, mean=None, rstd=None, threads=32):
    threads = min(threads, x.shape[1])
    absent = out.view(-1)[:0]  # Numba cannot pass None to a CUDA kernel
    vectors = [absent if t is None else t for t in (weight, bias, mean, rstd)]
    launch(_layernorm, x.shape[0], threads, x, *vectors[:2], out, *vectors[2:], np.float32(eps))
