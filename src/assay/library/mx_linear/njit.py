"""The packed linear layer in Numba on the CPU, one thread: a block's products in float32, scaled, summed in float64."""

import math

import numpy as np
from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


def loop(x, elements, scales, bias, out, block):
    (m, k), n = x.shape, elements.shape[0]
    for i in prange(m):
        row = np.empty(k, np.float32)
        for c in range(k):
            row[c] = load(x, (i, c))
        for j in range(n):
            total = 0.0 if bias is None else np.float64(load(bias, j))
            for b in range(scales.shape[1]):
                products = np.float32(0)
                for c in range(b * block, min(k, (b + 1) * block)):
                    products += row[c] * np.float32(elements[j, c])
                code = scales[j, b]
                total += products * (np.nan if code == 255 else math.ldexp(1.0, np.int32(code) - 133))
            store(out, (i, j), np.float32(total))


# A block's products may be added in any order, several at a time; NaN and Inf keep their meaning.
_linear = njit(fastmath={"reassoc", "contract", "nsz"})(loop)


@kernel("mx_linear")
def mx_linear(x, elements, scales, bias, *, block, out):
    _linear(*arrays(x, elements, scales, bias, out), block)
