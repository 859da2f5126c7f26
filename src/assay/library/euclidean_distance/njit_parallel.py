"""Euclidean distance in Numba on the CPU, all threads, each with rows of its own."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.euclidean_distance.njit import loop

_distance = njit(parallel=True)(loop)


@kernel("euclidean_distance")
def euclidean_distance(x, y, *, out):
    _distance(*arrays(x, y, out))
