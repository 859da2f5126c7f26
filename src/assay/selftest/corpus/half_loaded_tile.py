"""The shared tile holds two elements per thread, and each thread loads one: half of every tile stays 0."""

from numba import cuda, float32

from assay import kernel
from assay.backends.numba import launch

DETECTOR = "values"
WORKLOAD = "n=1000,dtype=fp32"
THREADS = 16


@cuda.jit
def _copy_through_tile(x, y, alpha, out, loads):
    tile = cuda.shared.array(32, float32)
    t, start = cuda.threadIdx.x, cuda.blockIdx.x * 32
    tile[t] = 0.0
    tile[t + THREADS] = 0.0
    for k in range(loads):
        i = start + t + k * THREADS
        if i < x.size:
            tile[t + k * THREADS] = x[i]
    cuda.syncthreads()
    for k in range(2):
        i = start + t + k * THREADS
        if i < x.size:
            out[i] = alpha * tile[t + k * THREADS] + y[i]


@kernel("axpy", variant="wrong")
def wrong(x, y, *, alpha, out):
    launch(_copy_through_tile, -(-x.numel() // 32), THREADS, x, y, float32(alpha), out, 1)


@kernel("axpy", variant="fixed")
def fixed(x, y, *, alpha, out):
    launch(_copy_through_tile, -(-x.numel() // 32), THREADS, x, y, float32(alpha), out, 2)
