"""The last term is left out: k runs from the row to the column, and the column itself belongs to the range."""

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


@njit(parallel=True)
def _matmul(a, b, out):
    n = a.shape[0]
    for row in prange(n):
        for col in range(row):
            store(out, (row, col), 0.0)
        for col in range(row, n):
            total = 0.0
            for k in range(row, col):  # Wrong: up to and including col.
                total += load(a, (row, k)) * load(b, (k, col))
            store(out, (row, col), total)


@kernel("../matmul_upper_triangular.py:matmul_upper_triangular")
def without_the_diagonal(a, b, *, out):
    _matmul(*arrays(a, b, out))
