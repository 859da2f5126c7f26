"""Row scaling in Numba on the CPU, with the flags of fast math that leave NaN and Inf their meaning."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.row_scale.njit import loop

FAST = {"reassoc", "contract", "arcp", "afn", "nsz"}
_row_scale = njit(fastmath=FAST)(loop)


@kernel("row_scale")
def row_scale(x, scale, *, out):
    _row_scale(*arrays(x, scale, out))
