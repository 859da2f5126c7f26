"""The last block is moved back so that all its lanes are full, which is fine for a copy; in a sum the
elements it shares with the block before count twice."""

import numpy as np
from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values"


@njit
def _sum(x, total, moved):
    for start in range(0, x.size, 4096):
        first = max(0, min(start, x.size - 4096)) if moved else start
        for i in range(first, min(first + 4096, x.size)):
            total[0] += x[i]


def run(x, out, moved):
    total = np.zeros(1)
    _sum(*arrays(x), total, moved)
    out.fill_(total[0])


@kernel("sum", variant="wrong")
def wrong(x, *, out):
    run(x, out, True)


@kernel("sum", variant="fixed")
def fixed(x, *, out):
    run(x, out, False)
