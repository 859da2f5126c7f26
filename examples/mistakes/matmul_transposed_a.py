"""A is read as if it were m×k: right where A is symmetric, or has one row or one column."""

from numba import njit, prange

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype
from assay.backends.njit import arrays, load, store

source = Source("matmul_transposed_a.cu")


@kernel("../matmul_transposed_a.py:matmul_transposed_a", backend="cuda", variant="not_transposed")
def in_cuda(a, b, *, out):
    (k, m), n = a.shape, b.shape[1]
    source[f"matmul_transposed_a<{ctype(a)}>"]((cdiv(n, 16), cdiv(m, 16)), (16, 16), a, b, out, m, n, k)


@njit(parallel=True)
def _matmul(a, b, out, m):
    for row in prange(m):
        for col in range(b.shape[1]):
            total = 0.0
            for k in range(b.shape[0]):
                total += load(a, row * b.shape[0] + k) * load(b, (k, col))  # Wrong: k·m + row.
            store(out, (row, col), total)


@kernel("../matmul_transposed_a.py:matmul_transposed_a", backend="njit", variant="not_transposed")
def in_numba(a, b, *, out):
    _matmul(*arrays(a.view(-1), b, out), a.shape[1])
