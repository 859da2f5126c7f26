"""Large vectors are split among four workers, and each range includes its end: three elements are added
twice, which a million others hide."""

import numpy as np
from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values"


@njit
def _sum(x, partial, beyond):
    share = -(-x.size // partial.size)
    for p in range(partial.size):
        for i in range(p * share, min((p + 1) * share + beyond, x.size)):
            partial[p] += x[i]


def run(x, out, beyond):
    partial = np.zeros(4 if x.numel() >= 65536 else 1)
    _sum(*arrays(x), partial, beyond)
    out.fill_(partial.sum())


@kernel("sum", variant="wrong")
def wrong(x, *, out):
    run(x, out, 1)


@kernel("sum", variant="fixed")
def fixed(x, *, out):
    run(x, out, 0)
