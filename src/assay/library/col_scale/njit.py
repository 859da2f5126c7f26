"""Column scaling in Numba on the CPU, one thread."""

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


def loop(x, scale, y):
    rows, cols = x.shape
    for r in prange(rows):
        for c in range(cols):
            store(y, (r, c), load(x, (r, c)) * load(scale, c))


_col_scale = njit(loop)


@kernel("col_scale")
def col_scale(x, scale, *, out):
    _col_scale(*arrays(x, scale, out))
