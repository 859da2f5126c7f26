"""axpy in Numba on the CPU, with multiply and add contracted; NaN and Inf keep their meaning."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.axpy.njit import loop

FAST = {"reassoc", "contract", "arcp", "afn", "nsz"}
_axpy = njit(fastmath=FAST)(loop)


@kernel("axpy")
def axpy(x, y, *, alpha, out):
    _axpy(alpha, *arrays(x, y, out))
