"""eps is what it was in the paper, not what the caller says: only rows of small numbers show it."""

import math

from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values"


@njit
def _rmsnorm(x, weight, y, eps):
    for row in range(x.shape[0]):
        squares = 0.0
        for c in range(x.shape[1]):
            squares += x[row, c] * x[row, c]
        rstd = 1.0 / math.sqrt(squares / x.shape[1] + eps)
        for c in range(x.shape[1]):
            y[row, c] = x[row, c] * rstd * (weight[c] if weight is not None else 1.0)


@kernel("rmsnorm", variant="wrong")
def wrong(x, weight, *, eps, out):
    _rmsnorm(*arrays(x, weight, out), 1e-5)


@kernel("rmsnorm", variant="fixed")
def fixed(x, weight, *, eps, out):
    _rmsnorm(*arrays(x, weight, out), eps)
