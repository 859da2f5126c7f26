"""Two elements a step; where the last pair has no second element, the first is counted twice."""

import numpy as np
from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values"


@njit
def _wrong(x, total):
    for i in range(0, x.size, 2):
        total[0] += x[i] + x[min(i + 1, x.size - 1)]


@njit
def _fixed(x, total):
    for i in range(0, x.size, 2):
        total[0] += x[i]
        if i + 1 < x.size:
            total[0] += x[i + 1]


def run(loop, x, out):
    total = np.zeros(1)
    loop(*arrays(x), total)
    out.fill_(total[0])


@kernel("sum", variant="wrong")
def wrong(x, *, out):
    run(_wrong, x, out)


@kernel("sum", variant="fixed")
def fixed(x, *, out):
    run(_fixed, x, out)
