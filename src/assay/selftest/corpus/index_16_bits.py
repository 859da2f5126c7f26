"""The index is kept in 16 bits: right up to 65536 elements, and beyond that the first ones are read again."""

import math

import numpy as np
from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values or nonfinite"


@njit
def _wrong(x, y):
    for i in range(x.size):
        v = x[np.uint16(i)]
        y[i] = 0.5 * v * (1.0 + math.erf(v * 0.7071067811865476))


@njit
def _fixed(x, y):
    for i in range(x.size):
        v = x[i]
        y[i] = 0.5 * v * (1.0 + math.erf(v * 0.7071067811865476))


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    _wrong(*arrays(x, out))


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    _fixed(*arrays(x, out))
