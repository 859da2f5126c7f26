"""Euclidean distance in Numba on the CPU, one thread, accumulated in float64."""

import math

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


def loop(x, y, out):
    rows, cols = x.shape
    for row in prange(rows):
        total = 0.0
        for i in range(cols):
            difference = load(x, (row, i)) - load(y, (row, i))
            total += difference * difference
        store(out, row, math.sqrt(total))


_distance = njit(loop)


@kernel("euclidean_distance")
def euclidean_distance(x, y, *, out):
    _distance(*arrays(x, y, out))
