"""Each thread takes a whole share of the plane, so the pixels beyond the last full share are never summed."""

from numba import cuda, float32

from assay import kernel
from assay.backends.numba import launch, rounded, widen


@cuda.jit
def _mean(x, out):
    plane, t, threads = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    shared = cuda.shared.array(64, float32)
    total = float32(0)
    share = x.shape[1] // threads  # Wrong: rounded down, the rest belongs to nobody.
    for i in range(t * share, (t + 1) * share):
        total += widen(x[plane, i])
    shared[t] = total
    cuda.syncthreads()
    half = threads // 2
    while half > 0:
        if t < half:
            shared[t] += shared[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[plane] = rounded(out, shared[0] / float32(x.shape[1]))


@kernel("../global_avg_pool.py:global_avg_pool")
def drops_the_tail(x, *, out, threads=16):
    launch(_mean, x.shape[0], threads, x, out)
