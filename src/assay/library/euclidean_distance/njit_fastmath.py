"""Euclidean distance in Numba on the CPU, reassociation allowed; NaN and Inf keep their meaning."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.euclidean_distance.njit import loop

FAST = {"reassoc", "contract", "arcp", "afn", "nsz"}
_distance = njit(fastmath=FAST)(loop)


@kernel("euclidean_distance")
def euclidean_distance(x, y, *, out):
    _distance(*arrays(x, y, out))
