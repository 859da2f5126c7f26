"""A guard against overflow that is written for all values: an infinite input comes out as the largest finite number."""

import math

from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "nonfinite"
LARGEST = 3.4028234663852886e38


@njit
def _wrong(alpha, x, y, z):
    for i in range(x.size):
        v = alpha * x[i] + y[i]
        z[i] = min(max(v, -LARGEST), LARGEST) if v == v else v


@njit
def _fixed(alpha, x, y, z):
    for i in range(x.size):
        v = alpha * x[i] + y[i]
        given = math.isinf(x[i]) or math.isinf(y[i]) or v != v
        z[i] = v if given else min(max(v, -LARGEST), LARGEST)


@kernel("axpy", variant="wrong", dtypes=["fp32"])
def wrong(x, y, *, alpha, out):
    _wrong(alpha, *arrays(x, y, out))


@kernel("axpy", variant="fixed", dtypes=["fp32"])
def fixed(x, y, *, alpha, out):
    _fixed(alpha, *arrays(x, y, out))
