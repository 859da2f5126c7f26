"""Long rows are read in chunks with a running maximum; when a later chunk raises it, the sum so far is
not scaled down to match."""

import math

import numpy as np
from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values"


@njit(error_model="numpy")
def _softmax(x, y, rescale):
    rows, cols = x.shape
    chunk = cols if cols <= 2048 else 1024
    for r in range(rows):
        top, total = -np.inf, 0.0
        for start in range(0, cols, chunk):
            before = top
            for c in range(start, min(start + chunk, cols)):
                top = x[r, c] if x[r, c] > top or x[r, c] != x[r, c] else top
            if rescale and total > 0.0:
                total *= math.exp(before - top)
            for c in range(start, min(start + chunk, cols)):
                total += math.exp(x[r, c] - top) if x[r, c] > -np.inf else 0.0
        for c in range(cols):
            y[r, c] = math.exp(x[r, c] - top) / total


@kernel("softmax", variant="wrong")
def wrong(x, *, out):
    _softmax(*arrays(x, out), False)


@kernel("softmax", variant="fixed")
def fixed(x, *, out):
    _softmax(*arrays(x, out), True)
