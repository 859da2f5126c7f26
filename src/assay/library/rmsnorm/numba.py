"""RMSNorm in Numba CUDA: one block per row, the sum of squares joined through shared memory."""

import math

import numpy as np
from numba import cuda, float32

from assay import kernel
from assay.backends.numba import launch, rounded, widen


@cuda.jit
def _rmsnorm(x, weight, y, eps):
    row, t, threads = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    sums = cuda.shared.array(256, float32)
    total = float32(0)
    for start in range(t, x.shape[1], 64 * threads):  # a long sum loses bits: sum runs, then the runs
        run = float32(0)
        for c in range(start, min(start + 64 * threads, x.shape[1]), threads):
            v = widen(x[row, c])
            run += v * v
        total += run
    sums[t] = total
    cuda.syncthreads()
    half = threads // 2
    while half:
        if t < half:
            sums[t] += sums[t + half]
        cuda.syncthreads()
        half //= 2
    rstd = float32(1) / math.sqrt(sums[0] / float32(x.shape[1]) + eps)
    for c in range(t, x.shape[1], threads):
        v = widen(x[row, c]) * rstd
        if weight.size:
            v *= widen(weight[c])
        y[row, c] = rounded(y, v)


@kernel("rmsnorm", tune={"threads": [32, 64, 128, 256]})
def rmsnorm(x, weight, *, eps, out, threads=64):
    rows, cols = x.shape
    weight = out.view(-1)[:0] if weight is None else weight  # Numba cannot pass None to a CUDA kernel
    block = min(threads, 1 << (cols - 1).bit_length())  # a power of two: the sums are joined by halves
    launch(_rmsnorm, rows, block, x, weight, out, np.float32(eps))
