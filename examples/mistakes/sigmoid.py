"""e^x / (1 + e^x) for every x: from 89 on it is ∞ / ∞."""

import math

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


@njit(parallel=True)
def _sigmoid(x, out):
    for i in prange(x.size):
        e = math.exp(load(x, i))
        store(out, i, e / (1 + e))  # Wrong for large x.


@kernel("../sigmoid.py:sigmoid")
def infinity_over_infinity(x, *, out):
    _sigmoid(*arrays(x, out))
