"""The second stage is one block of 256 threads, one partial sum each: beyond 256 · 1024 elements there
are more partial sums than threads."""

import numpy as np
from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values"


@njit
def _sum(x, partial, added):
    for p in range(partial.size):
        for i in range(p * 1024, min(x.size, (p + 1) * 1024)):
            partial[p] += x[i]
    total = 0.0
    for p in range(added):
        total += partial[p]
    return total


@kernel("sum", variant="wrong")
def wrong(x, *, out):
    partial = np.zeros(-(-x.numel() // 1024))
    out.fill_(_sum(*arrays(x), partial, min(256, partial.size)))


@kernel("sum", variant="fixed")
def fixed(x, *, out):
    partial = np.zeros(-(-x.numel() // 1024))
    out.fill_(_sum(*arrays(x), partial, partial.size))
