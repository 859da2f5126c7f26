"""The sum in Numba CUDA, in two stages: up to 1024 blocks leave a partial sum each, one adds them up."""

from numba import cuda, float32

from assay import kernel
from assay.backends.numba import launch, rounded, widen


@cuda.jit(device=True)
def block_sum(v):
    """Σv over threadIdx.x, for each threadIdx.y (blockDim.x a power of two): a tree in shared memory."""
    shared = cuda.shared.array(128, float32)
    first, half = cuda.threadIdx.y * cuda.blockDim.x, cuda.blockDim.x // 2
    t = first + cuda.threadIdx.x
    shared[t] = v
    cuda.syncthreads()
    while half > 0:
        if cuda.threadIdx.x < half:
            shared[t] += shared[t + half]
        cuda.syncthreads()
        half //= 2
    total = shared[first]
    cuda.syncthreads()  # all have read before the next call writes
    return total


@cuda.jit
def _sum(x, n, y):
    """Each block sums its share of the first n elements of x into its own element of y."""
    total = float32(0)
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        total += widen(x[i])
    total = block_sum(total)
    if cuda.threadIdx.x == 0:
        y[cuda.blockIdx.x] = rounded(y, total)


@kernel("sum", scratch={"partial": ("fp32", 1024)}, tune={"threads": [32, 64, 128]})
def sum(x, *, out, partial, threads=128):
    n = x.numel()
    blocks = min(-(-n // (8 * threads)), 1024)
    launch(_sum, blocks, threads, x, n, partial)
    launch(_sum, 1, threads, partial, blocks, out.view(1))
