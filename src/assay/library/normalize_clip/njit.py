"""Normalise and clip in Numba on the CPU, one thread."""

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


def loop(x, y, mean, std, low, high):
    for i in prange(x.size):
        v = (load(x, i) - mean) / std
        store(y, i, low if v < low else high if v > high else v)  # NaN fails both tests


_normalize_clip = njit(loop)


@kernel("normalize_clip")
def normalize_clip(x, *, mean, std, low, high, out):
    _normalize_clip(*arrays(x, out), mean, std, low, high)
