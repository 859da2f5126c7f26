"""The vector loop starts at the first 16-byte boundary, and the few elements before it are forgotten."""

import math

from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "unwritten"


@njit
def _gelu(x, y, first):
    for i in range(first, x.size):
        y[i] = 0.5 * x[i] * (1.0 + math.erf(x[i] * 0.7071067811865476))


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    _gelu(*arrays(x, out), -x.data_ptr() % 16 // x.element_size())


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    _gelu(*arrays(x, out), 0)
