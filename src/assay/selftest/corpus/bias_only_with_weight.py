"""The bias is added inside `if weight is not None`, because a test model always had both."""

import math

from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values or stale"  # of a single column only the bias shows, and `out` ignores it


@njit
def _ln_gelu(x, weight, bias, y, eps, nested):
    rows, cols = x.shape
    for r in range(rows):
        mean = 0.0
        for c in range(cols):
            mean += x[r, c] / cols
        squares = 0.0
        for c in range(cols):
            squares += (x[r, c] - mean) ** 2
        rstd = 1.0 / math.sqrt(squares / cols + eps)
        for c in range(cols):
            v = (x[r, c] - mean) * rstd
            if weight is not None:
                v *= weight[c]
                if nested and bias is not None:
                    v += bias[c]
            if not nested and bias is not None:
                v += bias[c]
            y[r, c] = 0.5 * v * (1.0 + math.erf(v * 0.7071067811865476))


@kernel("ln_gelu", variant="wrong")
def wrong(x, weight, bias, *, eps, out):
    _ln_gelu(*arrays(x, weight, bias, out), eps, True)


@kernel("ln_gelu", variant="fixed")
def fixed(x, weight, bias, *, eps, out):
    _ln_gelu(*arrays(x, weight, bias, out), eps, False)
