"""MXINT8 to floats in Numba on the CPU, one thread: a block's scale, then its products."""

import math

import numpy as np
from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, store


def loop(elements, scales, out, block):
    rows, cols = elements.shape
    for r in prange(rows):
        for b in range(scales.shape[1]):
            code = scales[r, b]
            scale = np.nan if code == 255 else math.ldexp(1.0, np.int32(code) - 133)
            for c in range(b * block, min(cols, (b + 1) * block)):
                store(out, (r, c), np.float32(elements[r, c] * scale))  # exact in float32


_dequantize = njit(loop)


@kernel("mx_dequantize")
def mx_dequantize(elements, scales, *, block, out):
    _dequantize(*arrays(elements, scales, out), block)
