"""SiLU in Numba on the CPU, one thread."""

import math

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


def loop(x, y):
    for i in prange(x.size):
        v = load(x, i)
        store(y, i, v / (1.0 + math.exp(-v)))


_silu = njit(loop)


@kernel("silu")
def silu(x, *, out):
    _silu(*arrays(x, out))
