"""The norm of the first row stands for both: right for embeddings that are normalised already."""

import math

from numba import njit, prange

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype
from assay.backends.njit import arrays, load, store

source = Source("cosine_similarity.cu")


@kernel("../cosine_similarity.py:cosine_similarity", backend="cuda", variant="one_norm_twice")
def in_cuda(a, b, *, out):
    rows, dim = a.shape
    source[f"cosine_similarity<{ctype(a)}>"](cdiv(rows, 4), (32, 4), a, b, out, rows, dim)


@njit(parallel=True)
def _cosine(a, b, out):
    for row in prange(a.shape[0]):
        both, left = 0.0, 0.0
        for i in range(a.shape[1]):
            v, u = float(load(a, (row, i))), float(load(b, (row, i)))
            both += v * u
            left += v * v
        store(out, row, both / max(math.sqrt(left), 1e-8) ** 2)  # Wrong: b has a norm of its own.


@kernel("../cosine_similarity.py:cosine_similarity", backend="njit", variant="one_norm_twice")
def in_numba(a, b, *, out):
    _cosine(*arrays(a, b, out))
