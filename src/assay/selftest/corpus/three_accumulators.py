"""Rows of 768, 1536, … columns take a fast path with three accumulators, and the third is forgotten
where they are joined."""

import math

from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values"


@njit
def _rmsnorm(x, weight, y, eps, all_three):
    rows, cols = x.shape
    for r in range(rows):
        a = b = c = 0.0
        if cols % 768 == 0:
            for start in range(0, cols, 768):
                for k in range(start, start + 256):
                    a += x[r, k] * x[r, k]
                    b += x[r, k + 256] * x[r, k + 256]
                    c += x[r, k + 512] * x[r, k + 512]
        else:
            for k in range(cols):
                a += x[r, k] * x[r, k]
        squares = a + b + c if all_three else a + b
        rstd = 1.0 / math.sqrt(squares / cols + eps)
        for k in range(cols):
            y[r, k] = x[r, k] * rstd * (weight[k] if weight is not None else 1.0)


@kernel("rmsnorm", variant="wrong")
def wrong(x, weight, *, eps, out):
    _rmsnorm(*arrays(x, weight, out), eps, False)


@kernel("rmsnorm", variant="fixed")
def fixed(x, weight, *, eps, out):
    _rmsnorm(*arrays(x, weight, out), eps, True)
