"""A block has as many threads as a short row has columns, and the tree in shared memory halves that
number: where it is odd, a part is left behind."""

from numba import cuda, float32

from assay import kernel
from assay.backends.numba import launch

DETECTOR = "values"


@cuda.jit(device=True)
def block_sum(v, threads):
    parts = cuda.shared.array(16, float32)
    t = cuda.threadIdx.x
    parts[t] = v
    cuda.syncthreads()
    while threads > 1:
        half = threads // 2
        if t < half:
            parts[t] += parts[t + half]
        cuda.syncthreads()
        threads = half
    total = parts[0]
    cuda.syncthreads()
    return total


@cuda.jit
def _mean_var(x, mean, var):
    r, t, threads, cols = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x, x.shape[1]
    total = squares = float32(0)
    for c in range(t, cols, threads):
        total += x[r, c]
    mu = block_sum(total, threads) / float32(cols)
    for c in range(t, cols, threads):
        squares += (x[r, c] - mu) * (x[r, c] - mu)
    squares = block_sum(squares, threads)
    if t == 0:
        mean[r] = mu
        var[r] = squares / float32(cols)


@kernel("mean_var", variant="wrong", backend="numba")
def wrong(x, *, out, var):
    launch(_mean_var, x.shape[0], min(16, x.shape[1]), x, out, var)


@kernel("mean_var", variant="fixed", backend="numba")
def fixed(x, *, out, var):
    launch(_mean_var, x.shape[0], min(16, 1 << (x.shape[1].bit_length() - 1)), x, out, var)
