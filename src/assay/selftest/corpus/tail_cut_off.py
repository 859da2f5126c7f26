"""Beyond ±4 the result is taken to be x or 0 and no exponential is computed: at −4 it is −0.0001, not 0."""

import math

from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values"


@njit
def _gelu_tanh(x, y, cut):
    for i in range(x.size):
        v = float(x[i])
        if v > cut:
            y[i] = v
        elif v < -cut:
            y[i] = 0.0
        else:
            y[i] = 0.5 * v * (1.0 + math.tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)))


@kernel("gelu_tanh", variant="wrong")
def wrong(x, *, out):
    _gelu_tanh(*arrays(x, out), 4.0)


@kernel("gelu_tanh", variant="fixed")
def fixed(x, *, out):
    _gelu_tanh(*arrays(x, out), math.inf)
