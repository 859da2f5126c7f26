"""Euclidean distance in Numba on the CPU, accumulated in float64."""

import math

from numba import prange

from assay import kernel
from assay.backends.njit import arrays, jitted, load, store

VARIANTS = {"parallel": {"parallel": True}, "fastmath": {"fastmath": True}}


def loop(x, y, out):
    rows, cols = x.shape
    for row in prange(rows):
        total = 0.0
        for i in range(cols):
            difference = load(x, (row, i)) - load(y, (row, i))
            total += difference * difference
        store(out, row, math.sqrt(total))


@kernel("euclidean_distance", variants=VARIANTS)
def euclidean_distance(x, y, *, out, parallel=False, fastmath=False):
    jitted(loop, parallel, fastmath)(*arrays(x, y, out))
