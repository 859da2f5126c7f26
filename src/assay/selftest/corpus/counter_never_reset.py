"""The block that finishes last adds up the parts; it knows by a counter that starts at 0 in the first
call only, so in later calls nobody is last."""

import numpy as np
from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "nonfinite or unwritten"
counter = np.zeros(1, np.int64)


@njit
def _sum(x, out, counter):
    blocks = max(1, -(-x.size // 1024))
    parts = np.zeros(blocks)
    for b in range(blocks):
        for i in range(b * 1024, min(x.size, (b + 1) * 1024)):
            parts[b] += x[i]
        counter[0] += 1
        if counter[0] == blocks:
            out[0] = parts.sum()


@kernel("sum", variant="wrong")
def wrong(x, *, out):
    _sum(*arrays(x, out.view(1)), counter)


@kernel("sum", variant="fixed")
def fixed(x, *, out):
    counter[0] = 0
    _sum(*arrays(x, out.view(1)), counter)
