"""Normalise and clip in Numba on the CPU, dividing by way of 1/std; NaN and Inf keep their meaning."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.normalize_clip.njit import loop

FAST = {"reassoc", "contract", "arcp", "afn", "nsz"}
_normalize_clip = njit(fastmath=FAST)(loop)


@kernel("normalize_clip")
def normalize_clip(x, *, mean, std, low, high, out):
    _normalize_clip(*arrays(x, out), mean, std, low, high)
