"""The result is right, but the reciprocal deviation kept for the backward pass is computed again, with
eps outside the root."""

import math

from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values or stale"


@njit
def _layernorm(x, weight, bias, y, mean, rstd, eps, inside):
    rows, cols = x.shape
    for r in range(rows):
        mu = squares = 0.0
        for c in range(cols):
            mu += x[r, c] / cols
        for c in range(cols):
            squares += (x[r, c] - mu) ** 2
        scale = 1.0 / math.sqrt(squares / cols + eps)
        for c in range(cols):
            v = (x[r, c] - mu) * scale
            v = v * weight[c] if weight is not None else v
            y[r, c] = v + bias[c] if bias is not None else v
        if mean is not None:
            mean[r] = mu
        if rstd is not None:
            rstd[r] = scale if inside else 1.0 / (math.sqrt(squares / cols) + eps)


@kernel("layernorm", variant="wrong")
def wrong(x, weight, bias, *, eps, out, mean=None, rstd=None):
    _layernorm(*arrays(x, weight, bias, out, mean, rstd), eps, False)


@kernel("layernorm", variant="fixed")
def fixed(x, weight, bias, *, eps, out, mean=None, rstd=None):
    _layernorm(*arrays(x, weight, bias, out, mean, rstd), eps, True)
