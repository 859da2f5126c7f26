"""Quantisation to MXINT8 in Numba on the CPU, one thread: the largest of a block, then its codes."""

import math

import numpy as np
from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load

LARGEST = np.float32(3.4028234663852886e38)


def loop(x, elements, scales, block):
    rows, cols = x.shape
    for r in prange(rows):
        for b in range(scales.shape[1]):
            start, end = b * block, min(cols, (b + 1) * block)
            largest, finite = np.float32(0), True
            for c in range(start, end):
                v = abs(load(x, (r, c)))
                finite &= v <= LARGEST  # false for NaN too
                largest = max(largest, v)
            exponent = math.frexp(largest)[1] - 1 if largest > 0 else -127
            exponent = max(-127, exponent)
            scales[r, b] = exponent + 127 if finite else 255
            scale = math.ldexp(1.0, 6 - exponent) if finite else 0.0  # in float64, which holds every product exactly
            for c in range(start, end):
                v = np.rint(load(x, (r, c)) * scale) if finite else 0.0
                elements[r, c] = np.int8(min(127.0, max(-127.0, v)))


_quantize = njit(loop)


@kernel("mx_quantize")
def mx_quantize(x, *, block, elements, scales):
    _quantize(*arrays(x, elements, scales), block)
