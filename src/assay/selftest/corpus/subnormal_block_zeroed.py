"""A block whose largest value has an exponent field of 0 is taken for zeros: blocks of subnormal numbers are lost."""

import math

import numpy as np
from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values"
LARGEST = np.float32(3.4028234663852886e38)


@njit
def _quantize(x, elements, scales, block, smallest):
    rows, cols = x.shape
    for r in range(rows):
        for b in range(scales.shape[1]):
            end, largest, finite = min(cols, (b + 1) * block), np.float32(0), True
            for c in range(b * block, end):
                largest = max(largest, abs(x[r, c]))
                finite &= abs(x[r, c]) <= LARGEST
            exponent = max(-127, math.frexp(largest)[1] - 1) if largest > 0 else -127
            scales[r, b] = exponent + 127 if finite else 255
            for c in range(b * block, end):
                v = np.rint(x[r, c] * math.ldexp(1.0, 6 - exponent)) if finite and largest >= smallest else 0.0
                elements[r, c] = np.int8(min(127.0, max(-127.0, v)))


@kernel("mx_quantize", variant="wrong")
def wrong(x, *, block, elements, scales):
    _quantize(*arrays(x, elements, scales), block, 2.0**-126)


@kernel("mx_quantize", variant="fixed")
def fixed(x, *, block, elements, scales):
    _quantize(*arrays(x, elements, scales), block, 0.0)
