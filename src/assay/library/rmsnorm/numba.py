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
    for c in range(t, x.shape[1], threads):
        v = widen(x[row, c])
        total += v * v
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
        if weight is not None:
            v *= widen(weight[c])
        y[row, c] = rounded(y, v)


@kernel("rmsnorm", tune={"threads": [32, 64, 128, 256]})
def rmsnorm(x, weight, *, eps, out, threads=64):
    launch(_rmsnorm, x.shape[0], threads, x, weight, out, np.float32(eps))
