"""Column scaling in Numba on the CPU, all threads, each with rows of its own."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.col_scale.njit import loop

_col_scale = njit(parallel=True)(loop)


@kernel("col_scale")
def col_scale(x, scale, *, out):
    _col_scale(*arrays(x, scale, out))
