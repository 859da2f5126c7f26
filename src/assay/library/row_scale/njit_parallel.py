"""Row scaling in Numba on the CPU, all threads, each with rows of its own."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.row_scale.njit import loop

_row_scale = njit(parallel=True)(loop)


@kernel("row_scale")
def row_scale(x, scale, *, out):
    _row_scale(*arrays(x, scale, out))
