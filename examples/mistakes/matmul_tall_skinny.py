"""Partial sums are kept in the output, so a 16-bit output rounds after every product instead of once at the end."""

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


@njit(parallel=True)
def _matmul(a, b, out):
    for row in prange(a.shape[0]):
        for col in range(b.shape[1]):
            store(out, (row, col), 0.0)
        for k in range(a.shape[1]):
            for col in range(b.shape[1]):
                # Wrong: `out` may be bf16 or fp16.
                store(out, (row, col), load(out, (row, col)) + load(a, (row, k)) * load(b, (k, col)))


@kernel("../matmul_tall_skinny.py:matmul_tall_skinny", dtypes=["bf16", "fp16"])
def accumulates_in_the_output(a, b, *, out):
    _matmul(*arrays(a, b, out))
