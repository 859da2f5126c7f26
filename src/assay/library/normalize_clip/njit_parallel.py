"""Normalise and clip in Numba on the CPU, all threads."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.normalize_clip.njit import loop

_normalize_clip = njit(parallel=True)(loop)


@kernel("normalize_clip")
def normalize_clip(x, *, mean, std, low, high, out):
    _normalize_clip(*arrays(x, out), mean, std, low, high)
