"""The unbiased variance, divided by one less than the number of elements. Normalisation uses the biased one."""

import math

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


@njit(parallel=True)
def _norm(x, weight, bias, out, eps):
    n, groups, channels, pixels = x.shape
    for place in prange(n * groups):
        i, g = place // groups, place % groups
        total = 0.0
        for c in range(channels):
            for p in range(pixels):
                total += load(x, (i, g, c, p))
        mean = total / (channels * pixels)
        total = 0.0
        for c in range(channels):
            for p in range(pixels):
                total += (load(x, (i, g, c, p)) - mean) ** 2
        rstd = 1 / math.sqrt(total / max(1, channels * pixels - 1) + eps)  # Wrong: by channels·pixels.
        for c in range(channels):
            for p in range(pixels):
                v = (load(x, (i, g, c, p)) - mean) * rstd
                store(out, (i, g, c, p), v * load(weight, (g, c)) + load(bias, (g, c)))


@kernel("../group_norm.py:group_norm")
def unbiased_variance(x, weight, bias, *, eps, out):
    _norm(*arrays(x, weight, bias, out), eps)
