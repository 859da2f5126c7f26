"""axpy in Numba on the CPU, all threads."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.axpy.njit import loop

_axpy = njit(parallel=True)(loop)


@kernel("axpy")
def axpy(x, y, *, alpha, out):
    _axpy(alpha, *arrays(x, y, out))
