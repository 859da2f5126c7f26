"""Softmax in Numba on the CPU, rows over all threads."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.softmax.njit import loop

_softmax = njit(parallel=True)(loop)


@kernel("softmax")
def softmax(x, *, out):
    _softmax(*arrays(x, out))
