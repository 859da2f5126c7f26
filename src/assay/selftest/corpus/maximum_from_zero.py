"""The running maximum starts at 0: rows far below zero are not shifted, and all their exponentials vanish."""

import math

import numpy as np
from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "nonfinite"


@njit(error_model="numpy")
def _softmax(x, y, start):
    rows, cols = x.shape
    for r in range(rows):
        top, total = start, 0.0
        for c in range(cols):
            top = max(top, x[r, c])
        for c in range(cols):
            total += math.exp(x[r, c] - top)
        for c in range(cols):
            y[r, c] = math.exp(x[r, c] - top) / total


@kernel("softmax", variant="wrong")
def wrong(x, *, out):
    _softmax(*arrays(x, out), 0.0)


@kernel("softmax", variant="fixed")
def fixed(x, *, out):
    _softmax(*arrays(x, out), -np.inf)
