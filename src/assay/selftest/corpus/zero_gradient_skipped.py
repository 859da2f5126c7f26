"""Where the incoming gradient is exactly 0 the result is taken to be 0 and x is not looked at: a NaN in
it goes unnoticed."""

import math

from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "nonfinite or unwritten"


@njit
def _gelu_backward(dy, x, out, skip):
    for i in range(x.size):
        if skip and dy[i] == 0.0:
            out[i] = 0.0
        else:
            v = float(x[i])
            slope = 0.5 * (1.0 + math.erf(v * 0.7071067811865476))
            slope += v * 0.3989422804014327 * math.exp(-0.5 * v * v)
            out[i] = dy[i] * slope


@kernel("gelu_backward", variant="wrong")
def wrong(dy, x, *, out):
    _gelu_backward(*arrays(dy, x, out), True)


@kernel("gelu_backward", variant="fixed")
def fixed(dy, x, *, out):
    _gelu_backward(*arrays(dy, x, out), False)
