"""The packed linear layer in Numba on the CPU, one thread: four rows of the weight as floats, for every row of x."""

import numpy as np
from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store

STEP = np.ldexp(np.float32(1), np.arange(256) - 133)  # of each scale's code; exact in float32, and so is a weight
STEP[255] = np.nan


def loop(x, elements, scales, bias, out, block):
    (m, k), n = x.shape, elements.shape[0]
    rows = np.empty((m, k), np.float32)
    for i in range(m):
        for c in range(k):
            rows[i, c] = load(x, (i, c))
    for tile in prange((n + 3) // 4):
        first, last = 4 * tile, min(n, 4 * tile + 4)
        weight = np.zeros((4, k), np.float32)
        for j in range(first, last):
            for b in range(scales.shape[1]):
                step = STEP[scales[j, b]]
                for c in range(b * block, min(k, (b + 1) * block)):
                    weight[j - first, c] = np.float32(elements[j, c]) * step
        for i in range(m):
            s0 = s1 = s2 = s3 = np.float32(0)
            for c in range(k):  # each value of x is read once for four products
                v = rows[i, c]
                s0 += v * weight[0, c]
                s1 += v * weight[1, c]
                s2 += v * weight[2, c]
                s3 += v * weight[3, c]
            sums = s0, s1, s2, s3
            for j in range(first, last):
                store(out, (i, j), sums[j - first] + (np.float32(0) if bias is None else load(bias, j)))


# Products may be added in any order, several at a time; NaN and Inf keep their meaning.
_linear = njit(fastmath={"reassoc", "contract", "nsz"})(loop)


@kernel("mx_linear")
def mx_linear(x, elements, scales, bias, *, block, out):
    _linear(*arrays(x, elements, scales, bias, out), block)
