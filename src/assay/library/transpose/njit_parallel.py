"""Transposition in Numba on the CPU, all threads, a band of rows each."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.transpose.njit import tiles

_transpose = njit(parallel=True)(tiles)


@kernel("transpose")
def transpose(x, *, out):
    _transpose(*arrays(x, out))
