"""LayerNorm in Numba on the CPU: mean, variance, result, one row after the other."""

import math

from numba import prange

from assay import kernel
from assay.backends.njit import arrays, jitted, load, store

VARIANTS = {"parallel": {"parallel": True}, "fastmath": {"fastmath": True}}
TUNE = {"parallel": [False, True], "threads": [0, 1, 2, 4, 8, 16, 32, 64], "chunk": [0, 1, 32]}
FITS = "threads < cores if parallel else threads == 0 and chunk == 0"


def loop(x, weight, bias, y, mean, rstd, eps):
    rows, cols = x.shape
    for r in prange(rows):
        total = 0.0  # float64: a long row's sum would lose bits in float32
        for c in range(cols):
            total += load(x, (r, c))
        mu = total / cols
        squares = 0.0
        for c in range(cols):
            squares += (load(x, (r, c)) - mu) ** 2
        scale = 1.0 / math.sqrt(squares / cols + eps)
        for c in range(cols):
            v = (load(x, (r, c)) - mu) * scale
            if weight is not None:
                v *= load(weight, c)
            if bias is not None:
                v += load(bias, c)
            store(y, (r, c), v)
        if mean is not None:
            mean[r] = mu
        if rstd is not None:
            rstd[r] = scale


@kernel("layernorm", variants=VARIANTS, tune=TUNE, fits=FITS)
def layernorm(x, weight, bias, *, eps, out, mean=None, rstd=None, parallel=False, fastmath=False, threads=0, chunk=0):
    jitted(loop, parallel, fastmath, threads, chunk)(*arrays(x, weight, bias, out, mean, rstd), eps)
