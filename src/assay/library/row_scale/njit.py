"""Row scaling in Numba on the CPU, one thread."""

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


def loop(x, scale, y):
    rows, cols = x.shape
    for r in prange(rows):
        factor = load(scale, r)
        for c in range(cols):
            store(y, (r, c), load(x, (r, c)) * factor)


_row_scale = njit(loop)


@kernel("row_scale")
def row_scale(x, scale, *, out):
    _row_scale(*arrays(x, scale, out))
