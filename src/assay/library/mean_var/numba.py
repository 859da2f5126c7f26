"""Mean and variance in Numba CUDA: one block per row, two passes over it."""

from numba import cuda, float32

from assay import kernel
from assay.backends.numba import launch, rounded, widen
from assay.library.sum.numba import block_sum


@cuda.jit
def _mean_var(x, mean, var):
    row, first, step = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    cols = float32(x.shape[1])
    total = float32(0)
    for i in range(first, x.shape[1], step):
        total += widen(x[row, i])
    mu = block_sum(total) / cols
    total = float32(0)
    for i in range(first, x.shape[1], step):
        deviation = widen(x[row, i]) - mu
        total += deviation * deviation
    squares = block_sum(total)
    if first == 0:
        mean[row] = rounded(mean, mu)
        var[row] = rounded(var, squares / cols)


@kernel("mean_var", tune={"threads": [32, 64, 128]})
def mean_var(x, *, out, var, threads=64):
    launch(_mean_var, x.shape[0], threads, x, out, var)
