"""Row scaling in Numba CUDA: one element per thread."""

from numba import cuda

from assay import kernel
from assay.backends.numba import launch, rounded, widen


@cuda.jit
def _row_scale(x, scale, y):
    i = cuda.grid(1)
    if i < x.size:
        r, c = i // x.shape[1], i % x.shape[1]
        y[r, c] = rounded(y, widen(x[r, c]) * widen(scale[r]))


@kernel("row_scale", tune={"threads": [64, 128, 256]})
def row_scale(x, scale, *, out, threads=128):
    launch(_row_scale, -(-x.numel() // threads), threads, x, scale, out)
