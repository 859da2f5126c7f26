"""e^x without subtracting the row's maximum first: fine on unit normals, infinity over infinity above 88."""

import math

from numba import float32, njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "nonfinite or exception"


@njit
def _softmax(x, y, shifted):
    for row in range(x.shape[0]):
        top = x[row].max() if shifted else float32(0)
        total = 0.0
        for c in range(x.shape[1]):
            y[row, c] = math.exp(x[row, c] - top)
            total += y[row, c]
        for c in range(x.shape[1]):
            y[row, c] = math.exp(x[row, c] - top) / total


@kernel("softmax", variant="wrong")
def wrong(x, *, out):
    _softmax(*arrays(x, out), False)


@kernel("softmax", variant="fixed")
def fixed(x, *, out):
    _softmax(*arrays(x, out), True)
