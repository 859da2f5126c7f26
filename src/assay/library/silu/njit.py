"""SiLU in Numba on the CPU."""

import math

from numba import prange

from assay import kernel
from assay.backends.njit import arrays, jitted, load, store

VARIANTS = {"parallel": {"parallel": True}, "fastmath": {"fastmath": True}}
TUNE = {"parallel": [False, True], "threads": [0, 1, 2, 4, 8, 16, 32, 64], "chunk": [0, 4096, 65536]}
FITS = "threads < cores if parallel else threads == 0 and chunk == 0"


def loop(x, y):
    for i in prange(x.size):
        v = load(x, i)
        store(y, i, v / (1.0 + math.exp(-v)))


@kernel("silu", variants=VARIANTS, tune=TUNE, fits=FITS)
def silu(x, *, out, parallel=False, fastmath=False, threads=0, chunk=0):
    jitted(loop, parallel, fastmath, threads, chunk)(*arrays(x, out))
