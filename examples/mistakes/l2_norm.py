"""The root of the mean square: RMSNorm's divisor, too small by √cols."""

import math

from numba import njit, prange

from assay import kernel
from assay.backends.cuda import Source, ctype
from assay.backends.njit import arrays, load, store

source = Source("l2_norm.cu")


@kernel("../l2_norm.py:l2_norm", backend="cuda", variant="root_mean_square")
def in_cuda(x, *, eps, out):
    rows, cols = x.shape
    source[f"l2_norm<{ctype(x)}>"](rows, 256, x, out, cols, eps)


@njit(parallel=True)
def _norm(x, out, eps):
    for row in prange(x.shape[0]):
        total = 0.0
        for i in range(x.shape[1]):
            v = float(load(x, (row, i)))
            total += v * v
        norm = math.sqrt(total / x.shape[1])  # Wrong: of the sum.
        norm = eps if norm < eps else norm
        for i in range(x.shape[1]):
            store(out, (row, i), load(x, (row, i)) / norm)


@kernel("../l2_norm.py:l2_norm", backend="njit", variant="root_mean_square")
def in_numba(x, *, eps, out):
    _norm(*arrays(x, out), eps)
