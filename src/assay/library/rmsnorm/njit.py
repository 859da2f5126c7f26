"""RMSNorm in Numba on the CPU: sum of squares, result, one row after the other."""

import math

from numba import prange

from assay import kernel
from assay.backends.njit import arrays, jitted, load, store

VARIANTS = {"parallel": {"parallel": True}, "fastmath": {"fastmath": True}}
TUNE = {"parallel": [False, True], "threads": [0, 1, 2, 4, 8, 16, 32, 64], "chunk": [0, 1, 32]}
FITS = "threads < cores if parallel else threads == 0 and chunk == 0"


def loop(x, weight, y, eps):
    for row in prange(x.shape[0]):
        squares = 0.0  # float64: a long row's sum would lose bits in float32
        for c in range(x.shape[1]):
            v = load(x, (row, c))
            squares += v * v
        rstd = 1.0 / math.sqrt(squares / x.shape[1] + eps)
        for c in range(x.shape[1]):
            v = load(x, (row, c)) * rstd
            if weight is not None:
                v *= load(weight, c)
            store(y, (row, c), v)


@kernel("rmsnorm", variants=VARIANTS, tune=TUNE, fits=FITS)
def rmsnorm(x, weight, *, eps, out, parallel=False, fastmath=False, threads=0, chunk=0):
    jitted(loop, parallel, fastmath, threads, chunk)(*arrays(x, weight, out), eps)
