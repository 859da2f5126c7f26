"""SiLU in Numba on the CPU."""

import math

from numba import prange

from assay import kernel
from assay.backends.njit import arrays, jitted, load, store

VARIANTS = {"parallel": {"parallel": True}, "fastmath": {"fastmath": True}}


def loop(x, y):
    for i in prange(x.size):
        v = load(x, i)
        store(y, i, v / (1.0 + math.exp(-v)))


@kernel("silu", variants=VARIANTS)
def silu(x, *, out, parallel=False, fastmath=False):
    jitted(loop, parallel, fastmath)(*arrays(x, out))
