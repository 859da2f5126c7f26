"""Each thread adds what its left neighbour has left in shared memory, with no barrier before: right as long as the
neighbour happens to come first."""

from numba import cuda, float32

from assay import kernel
from assay.backends.numba import launch

DETECTOR = "unstable or nonfinite or values"
NEEDS = "no gpu"
WORKLOAD = "n=64,dtype=fp32"
THREADS = 64


@cuda.jit
def _sum(x, out, barrier):
    parts = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    total = float32(0)
    for i in range(t, x.size, THREADS):
        total += x[i]
    parts[t] = total
    if barrier:
        cuda.syncthreads()
    if t == THREADS - 1:
        total = float32(0)
        for k in range(THREADS):
            total += parts[k]
        out[0] = total


@kernel("sum", variant="wrong")
def wrong(x, *, out):
    launch(_sum, 1, THREADS, x, out.view(1), False)


@kernel("sum", variant="fixed")
def fixed(x, *, out):
    launch(_sum, 1, THREADS, x, out.view(1), True)
