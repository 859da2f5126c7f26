"""Columns are taken in whole groups (32 in CUDA, 4 in Numba): those beyond the last full group are dropped."""

from numba import njit, prange

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype
from assay.backends.njit import arrays, load, store

source = Source("matvec.cu")


@kernel("../matvec.py:matvec", backend="cuda", variant="whole_groups_only")
def in_cuda(a, x, *, out):
    rows, cols = a.shape
    source[f"matvec<{ctype(a)}>"](cdiv(rows, 4), (32, 4), a, x, out, rows, cols)


@njit(parallel=True)
def _matvec(a, x, out):
    for row in prange(a.shape[0]):
        total = 0.0
        for group in range(a.shape[1] // 4):  # Wrong: the rest of the row is missing.
            for lane in range(4):
                total += load(a, (row, group * 4 + lane)) * load(x, group * 4 + lane)
        store(out, row, total)


@kernel("../matvec.py:matvec", backend="njit", variant="whole_groups_only")
def in_numba(a, x, *, out):
    _matvec(*arrays(a, x, out))
