"""The mean of every plane, in Numba CUDA: a block per plane, a tree of sums in shared memory."""

from numba import cuda, float32

from assay import Axis, Tensor, kernel, op
from assay.backends.numba import launch, rounded, widen


@op(
    axes={"planes": Axis(typical=4096), "pixels": Axis(min=1, typical=3136)},
    inputs={"x": Tensor("planes", "pixels", range=(-1000, 1000))},
    outputs={"out": Tensor("planes")},
    independent="planes",
    operations=lambda w: w.planes * w.pixels,
)
def global_avg_pool(x):
    """The mean over all pixels of a plane."""
    return x.mean(-1)


@cuda.jit
def _mean(x, out):
    plane, t, threads = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    shared = cuda.shared.array(64, float32)
    total = float32(0)
    for i in range(t, x.shape[1], threads):
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


@kernel("global_avg_pool", tune={"threads": [16, 32, 64]})
def honest(x, *, out, threads=16):
    launch(_mean, x.shape[0], threads, x, out)
