"""Mean and variance in Numba CUDA: two passes over each row; narrow rows share a block."""

from numba import cuda, float32

from assay import kernel
from assay.backends.numba import launch, rounded, widen
from assay.library.sum.numba import block_sum


@cuda.jit
def _mean_var(x, mean, var):
    row = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    cols = x.shape[1] if row < x.shape[0] else 0  # past the last row there is nothing to do but to keep step
    count = float32(x.shape[1])
    total = float32(0)
    for i in range(cuda.threadIdx.x, cols, cuda.blockDim.x):
        total += widen(x[row, i])
    mu = block_sum(total) / count
    total = float32(0)
    for i in range(cuda.threadIdx.x, cols, cuda.blockDim.x):
        deviation = widen(x[row, i]) - mu
        total += deviation * deviation
    squares = block_sum(total)
    if cuda.threadIdx.x == 0 and row < x.shape[0]:
        mean[row] = rounded(mean, mu)
        var[row] = rounded(var, squares / count)


@kernel("mean_var", tune={"threads": [32, 64, 128]})
def mean_var(x, *, out, var, threads=128):
    rows, cols = x.shape
    across = min(threads, 1 << (cols - 1).bit_length())
    down = threads // across
    launch(_mean_var, -(-rows // down), (across, down), x, out, var)
