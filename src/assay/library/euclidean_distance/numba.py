"""Euclidean distance in Numba CUDA: one block per row."""

import math

from numba import cuda, float32

from assay import kernel
from assay.backends.numba import launch, rounded, widen
from assay.library.sum.numba import block_sum


@cuda.jit
def _distance(x, y, out):
    row, first = cuda.blockIdx.x, cuda.threadIdx.x
    total = float32(0)
    for i in range(first, x.shape[1], cuda.blockDim.x):
        difference = widen(x[row, i]) - widen(y[row, i])
        total += difference * difference
    total = block_sum(total)
    if first == 0:
        out[row] = rounded(out, math.sqrt(total))


@kernel("euclidean_distance", tune={"threads": [32, 64, 128]})
def euclidean_distance(x, y, *, out, threads=64):
    launch(_distance, x.shape[0], threads, x, y, out)
