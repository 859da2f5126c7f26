"""The first pass over a row uses its stride, the second was written later and takes rows to be packed."""

import math

from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "overread"


@njit
def _rmsnorm(x, stride, weight, y, eps, second):
    rows, cols = y.shape
    for r in range(rows):
        squares = 0.0
        for c in range(cols):
            squares += x[r * stride + c] ** 2
        rstd = 1.0 / math.sqrt(squares / cols + eps)
        for c in range(cols):
            y[r, c] = x[r * second + c] * rstd * (weight[c] if weight is not None else 1.0)


def run(x, weight, eps, out, second):
    if out.numel():
        flat = x.as_strided(((x.shape[0] - 1) * x.stride(0) + x.shape[1],), (1,))
        _rmsnorm(*arrays(flat), x.stride(0), *arrays(weight, out), eps, second)


@kernel("rmsnorm", variant="wrong")
def wrong(x, weight, *, eps, out):
    run(x, weight, eps, out, x.shape[1])


@kernel("rmsnorm", variant="fixed")
def fixed(x, weight, *, eps, out):
    run(x, weight, eps, out, x.stride(0))
