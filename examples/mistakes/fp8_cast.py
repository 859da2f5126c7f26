"""The digits that do not fit are cut off: rounding towards zero, on average half a step too small."""

import math

import torch
from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load


@njit(parallel=True)
def _cast(x, out):
    for i in prange(x.size):
        v = float(load(x, i))
        size, sign = abs(v), 128 if math.copysign(1.0, v) < 0 else 0
        if v != v:
            out[i] = 127
            continue
        exponent = math.frexp(size)[1] - 1 if size >= 2.0**-6 else -6
        steps = int(math.ldexp(size, 3 - exponent))  # Wrong: to the nearest.
        out[i] = sign + (steps if exponent == -6 else (exponent + 7) * 8 + steps - 8)


@kernel("../fp8_cast.py:fp8_cast")
def cuts_digits_off(x, *, out):
    _cast(*arrays(x, out.view(torch.uint8)))
