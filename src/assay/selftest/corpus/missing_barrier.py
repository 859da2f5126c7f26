"""Threads leave their part in shared memory and the first adds them up, with no barrier between: some
are not there yet."""

from numba import config, cuda, float32

from assay import kernel
from assay.backends.numba import launch

DETECTOR = "values"
WORKLOAD = "n=4096,dtype=fp32"
THREADS = 64
SIMULATED = config.ENABLE_CUDASIM


@cuda.jit
def _sum(x, out, barrier):
    parts = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    parts[t] = 0.0
    cuda.syncthreads()
    total = float32(0)
    for i in range(t, x.size, THREADS):
        total += x[i]
    if t >= 32 and not SIMULATED:
        cuda.nanosleep(100000)  # the second warp is late, as on a busy multiprocessor
    parts[t] = total
    if barrier:
        cuda.syncthreads()
    if t == 0:
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
