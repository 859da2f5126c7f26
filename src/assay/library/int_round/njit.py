"""Rounding to integers with a scale in Numba on the CPU: the largest of a row, then its codes times the scale."""

import math

import numpy as np
from numba import prange

from assay import kernel
from assay.backends.njit import arrays, jitted, load, store
from assay.library.int_round.op import LARGEST_SCALE

VARIANTS = {"parallel": {"parallel": True}}
LARGEST = np.float32(3.4028234663852886e38)


def loop(x, y, most, cap):
    rows, cols = x.shape
    for r in prange(rows):
        largest, finite = np.float32(0), True
        for c in range(cols):
            v = abs(load(x, (r, c)))
            finite &= v <= LARGEST  # false for NaN too
            largest = max(largest, v)
        fraction, exponent = math.frexp(np.float64(largest) / most)  # float64, as the reference
        scale = math.ldexp(np.rint(fraction * 256.0) / 256.0, exponent)
        scale = min(max(scale, 2.0**-126), cap)
        for c in range(cols):
            code = np.rint(np.float64(load(x, (r, c))) / scale)
            code = min(max(code, -most), most)
            store(y, (r, c), code * scale + 0.0 if finite else np.nan)


@kernel("int_round", variants=VARIANTS)
def int_round(x, *, bits, out, parallel=False):
    jitted(loop, parallel, False)(*arrays(x, out), float(2 ** (bits - 1) - 1), LARGEST_SCALE[bits])
