"""Mean and variance in Numba on the CPU, reassociation allowed; NaN keeps its meaning."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.mean_var.njit import loop

FAST = {"reassoc", "contract", "arcp", "afn", "nsz"}
_mean_var = njit(fastmath=FAST)(loop)


@kernel("mean_var")
def mean_var(x, *, out, var):
    _mean_var(*arrays(x, out, var))
