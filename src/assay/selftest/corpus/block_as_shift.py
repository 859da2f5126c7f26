"""The column is shifted instead of divided to find its block, with the block rounded up to a power of
two: right for 16, 32, 64, wrong for 24."""

import math

import numpy as np
from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values or nonfinite"


@njit
def _dequantize(elements, scales, out, block):
    rows, cols = elements.shape
    for r in range(rows):
        for c in range(cols):
            code = np.int32(scales[r, c // block])
            step = np.nan if code == 255 else math.ldexp(1.0, code - 133)
            out[r, c] = elements[r, c] * step


@kernel("mx_dequantize", variant="wrong", dtypes=("fp32",))
def wrong(elements, scales, *, block, out):
    _dequantize(*arrays(elements, scales, out), 1 << (block - 1).bit_length())


@kernel("mx_dequantize", variant="fixed", dtypes=("fp32",))
def fixed(elements, scales, *, block, out):
    _dequantize(*arrays(elements, scales, out), block)
