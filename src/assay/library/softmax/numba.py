"""Softmax in Numba CUDA: one block per row, maximum and sum online, joined through shared memory."""

import math

import numpy as np
from numba import cuda, float32

from assay import kernel
from assay.backends.numba import launch, rounded, widen

NOTHING = np.float32(-np.inf)


@cuda.jit
def _softmax(x, y):
    row, t, threads = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    tops = cuda.shared.array(256, float32)  # a line each: the simulator knows a shared array by its line
    totals = cuda.shared.array(256, float32)
    top, total = NOTHING, float32(0)
    for c in range(t, x.shape[1], threads):
        v = widen(x[row, c])
        if v > top:
            total *= math.exp(top - v)
            top = v
        if v != NOTHING:  # −∞ − −∞ would be NaN
            total += math.exp(v - top)
    tops[t], totals[t] = top, total
    cuda.syncthreads()
    half = threads // 2
    while half:
        if t < half:
            top = max(tops[t], tops[t + half])
            base = top if top != NOTHING else float32(0)
            totals[t] *= math.exp(tops[t] - base)
            totals[t] += totals[t + half] * math.exp(tops[t + half] - base)
            tops[t] = top
        cuda.syncthreads()
        half //= 2
    top, total = tops[0], totals[0]
    for c in range(t, x.shape[1], threads):
        y[row, c] = rounded(y, math.exp(widen(x[row, c]) - top) / total)


@kernel("softmax", tune={"threads": [32, 64, 128, 256]})
def softmax(x, *, out, threads=64):
    rows, cols = x.shape
    block = min(threads, 1 << (cols - 1).bit_length())  # a power of two: the sums are joined by halves
    launch(_softmax, rows, block, x, out)
