"""Normalise and clip in Numba on the CPU."""

from numba import prange

from assay import kernel
from assay.backends.njit import arrays, jitted, load, store

VARIANTS = {"parallel": {"parallel": True}, "fastmath": {"fastmath": True}}


def loop(x, y, mean, std, low, high):
    for i in prange(x.size):
        v = (load(x, i) - mean) / std
        store(y, i, low if v < low else high if v > high else v)  # NaN fails both tests


@kernel("normalize_clip", variants=VARIANTS)
def normalize_clip(x, *, mean, std, low, high, out, parallel=False, fastmath=False):
    jitted(loop, parallel, fastmath)(*arrays(x, out), mean, std, low, high)
