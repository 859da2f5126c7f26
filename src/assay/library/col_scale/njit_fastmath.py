"""Column scaling in Numba on the CPU, with the flags of fast math that leave NaN and Inf their meaning."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.col_scale.njit import loop

FAST = {"reassoc", "contract", "arcp", "afn", "nsz"}
_col_scale = njit(fastmath=FAST)(loop)


@kernel("col_scale")
def col_scale(x, scale, *, out):
    _col_scale(*arrays(x, scale, out))
