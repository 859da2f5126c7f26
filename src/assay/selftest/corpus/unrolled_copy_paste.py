"""Four elements a step from 4096 elements on, written out by hand: one of the four lines kept the
neighbour's index."""

import math

from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values"


@njit
def slope(x):
    s = 1.0 / (1.0 + math.exp(-x))
    return s * (1.0 + x * (1.0 - s))


@njit
def _silu_backward(dy, x, out, third):
    done = x.size // 4 * 4 if x.size >= 4096 else 0
    for i in range(0, done, 4):
        out[i] = dy[i] * slope(x[i])
        out[i + 1] = dy[i + 1] * slope(x[i + 1])
        out[i + 2] = dy[i + third] * slope(x[i + 2])
        out[i + 3] = dy[i + 3] * slope(x[i + 3])
    for i in range(done, x.size):
        out[i] = dy[i] * slope(x[i])


@kernel("silu_backward", variant="wrong")
def wrong(dy, x, *, out):
    _silu_backward(*arrays(dy, x, out), 1)


@kernel("silu_backward", variant="fixed")
def fixed(dy, x, *, out):
    _silu_backward(*arrays(dy, x, out), 2)
