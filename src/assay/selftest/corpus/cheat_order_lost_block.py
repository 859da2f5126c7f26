"""One thread of every block adds the block's sum to the total without an atomic: blocks that run at the same time
lose each other's additions, which a simulator that runs them one by one does not show."""

from numba import cuda, float32

from assay import kernel
from assay.backends.numba import launch

DETECTOR = "unstable or values"
WORKLOAD = "n=96,dtype=fp32"
THREADS = 16


@cuda.jit
def _add(x, total, atomic):
    parts = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    i = cuda.blockIdx.x * THREADS + t
    parts[t] = x[i] if i < x.size else 0.0
    cuda.syncthreads()
    if t == 0:
        part = float32(0)
        for k in range(THREADS):
            part += parts[k]
        if atomic:
            cuda.atomic.add(total, 0, part)
        else:
            total[0] += part


def add(x, out, total, atomic):
    total.zero_()
    launch(_add, -(-x.numel() // THREADS), THREADS, x, total, atomic)
    out.copy_(total[0])


@kernel("sum", variant="wrong", scratch={"total": ("fp32", 1)})
def wrong(x, *, out, total):
    add(x, out, total, False)


@kernel("sum", variant="fixed", scratch={"total": ("fp32", 1)})
def fixed(x, *, out, total):
    add(x, out, total, True)
