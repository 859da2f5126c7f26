"""Softmax in Numba on the CPU: maximum, sum, result, one row after the other."""

import math

import numpy as np
from numba import prange

from assay import kernel
from assay.backends.njit import arrays, jitted, load, store

VARIANTS = {"parallel": {"parallel": True}, "fastmath": {"fastmath": True}}


def loop(x, y):
    for row in prange(x.shape[0]):
        top = np.float32(-np.inf)
        for c in range(x.shape[1]):
            top = max(top, load(x, (row, c)))
        total = 0.0  # float64: a long row's sum would lose bits in float32
        for c in range(x.shape[1]):
            total += math.exp(load(x, (row, c)) - top)
        for c in range(x.shape[1]):
            store(y, (row, c), math.exp(load(x, (row, c)) - top) / total)


@kernel("softmax", variants=VARIANTS)
def softmax(x, *, out, parallel=False, fastmath=False):
    jitted(loop, parallel, fastmath)(*arrays(x, out))
