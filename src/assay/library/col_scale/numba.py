"""Column scaling in Numba CUDA: one element per thread."""

from numba import cuda

from assay import kernel
from assay.backends.numba import launch, rounded, widen


@cuda.jit
def _col_scale(x, scale, y):
    i = cuda.grid(1)
    if i < x.size:
        r, c = i // x.shape[1], i % x.shape[1]
        y[r, c] = rounded(y, widen(x[r, c]) * widen(scale[c]))


@kernel("col_scale", tune={"threads": [64, 128, 256]})
def col_scale(x, scale, *, out, threads=128):
    launch(_col_scale, -(-x.numel() // threads), threads, x, scale, out)
