"""axpy in Numba CUDA: one element per thread."""

from numba import cuda
from numpy import float32

from assay import kernel
from assay.backends.numba import launch, rounded, widen


@cuda.jit
def _axpy(alpha, x, y, z):
    i = cuda.grid(1)
    if i < x.size:
        z[i] = rounded(z, alpha * widen(x[i]) + widen(y[i]))


@kernel("axpy", tune={"threads": [64, 128, 256]})
def axpy(x, y, *, alpha, out, threads=128):
    launch(_axpy, -(-x.numel() // threads), threads, float32(alpha), x, y, out)
