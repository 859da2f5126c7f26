"""Each row divided by the mean of its absolute values, in Numba CUDA: a block per row, sums in shared memory."""

from numba import cuda, float32

from assay import Axis, Tensor, kernel, op
from assay.backends.numba import launch, rounded, widen


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(min=1, typical=1024)},
    inputs={"x": Tensor("rows", "cols", range=(-1000, 1000))},
    outputs={"out": Tensor("rows", "cols")},
    independent="rows",
    operations=lambda w: 3 * w.rows * w.cols,
)
def l1_norm(x):
    """x / mean(|x|) along each row; a row of zeros gives NaN."""
    return x / x.abs().mean(-1, keepdim=True)


@cuda.jit
def _norm(x, out):
    row, t, threads = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    shared = cuda.shared.array(64, float32)
    total = float32(0)
    for i in range(t, x.shape[1], threads):
        total += abs(widen(x[row, i]))
    shared[t] = total
    cuda.syncthreads()
    half = threads // 2
    while half > 0:
        if t < half:
            shared[t] += shared[t + half]
        cuda.syncthreads()
        half //= 2
    mean = shared[0] / float32(x.shape[1])
    for i in range(t, x.shape[1], threads):
        out[row, i] = rounded(out, widen(x[row, i]) / mean)


@kernel("l1_norm", tune={"threads": [16, 32, 64]})
def honest(x, *, out, threads=16):
    launch(_norm, x.shape[0], threads, x, out)
