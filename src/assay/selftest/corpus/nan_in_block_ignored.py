"""Whether a block is finite is asked of its largest value only, and NaN is never larger than anything."""

import math

import numpy as np
from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values or unwritten"
LARGEST = np.float32(3.4028234663852886e38)


@njit
def _quantize(x, elements, scales, block, each):
    rows, cols = x.shape
    for r in range(rows):
        for b in range(scales.shape[1]):
            end, largest, finite = min(cols, (b + 1) * block), np.float32(0), True
            for c in range(b * block, end):
                if abs(x[r, c]) > largest:
                    largest = abs(x[r, c])
                if each:
                    finite &= abs(x[r, c]) <= LARGEST
            finite &= largest <= LARGEST
            exponent = max(-127, math.frexp(largest)[1] - 1) if finite and largest > 0 else -127
            scales[r, b] = exponent + 127 if finite else 255
            for c in range(b * block, end):
                v = np.rint(x[r, c] * math.ldexp(1.0, 6 - exponent)) if finite and x[r, c] == x[r, c] else 0.0
                elements[r, c] = np.int8(min(127.0, max(-127.0, v)))


@kernel("mx_quantize", variant="wrong")
def wrong(x, *, block, elements, scales):
    _quantize(*arrays(x, elements, scales), block, False)


@kernel("mx_quantize", variant="fixed")
def fixed(x, *, block, elements, scales):
    _quantize(*arrays(x, elements, scales), block, True)
