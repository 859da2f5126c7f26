"""Softmax in Numba on the CPU: maximum, sum, result, one row after the other."""

import math

import numpy as np
from numba import prange

from assay import kernel
from assay.backends.njit import arrays, jitted, load, store

VARIANTS = {"parallel": {"parallel": True}, "fastmath": {"fastmath": True}}
TUNE = {"parallel": [False, True], "threads": [0, 1, 2, 4, 8, 16, 32, 64], "chunk": [0, 1, 32]}
FITS = "threads < cores if parallel else threads == 0 and chunk == 0"


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


@kernel("softmax", variants=VARIANTS, tune=TUNE, fits=FITS)
def softmax(x, *, out, parallel=False, fastmath=False, threads=0, chunk=0):
    jitted(loop, parallel, fastmath, threads, chunk)(*arrays(x, out))
