"""Euclidean distance in Numba CUDA: a tree of sums for each row; narrow rows share a block."""

import math

from numba import cuda, float32

from assay import kernel
from assay.backends.numba import launch, rounded, widen
from assay.library.sum.numba import block_sum


@cuda.jit
def _distance(x, y, out):
    row = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    cols = x.shape[1] if row < x.shape[0] else 0  # past the last row there is nothing to do but to keep step
    total = float32(0)
    for i in range(cuda.threadIdx.x, cols, cuda.blockDim.x):
        difference = widen(x[row, i]) - widen(y[row, i])
        total += difference * difference
    total = block_sum(total)
    if cuda.threadIdx.x == 0 and row < x.shape[0]:
        out[row] = rounded(out, math.sqrt(total))


@kernel("euclidean_distance", tune={"threads": [32, 64, 128]})
def euclidean_distance(x, y, *, out, threads=128):
    rows, cols = x.shape
    across = min(threads, 1 << max(cols - 1, 0).bit_length())
    down = threads // across
    launch(_distance, -(-rows // down), (across, down), x, y, out)
