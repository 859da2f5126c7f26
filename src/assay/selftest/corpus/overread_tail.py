"""Four elements a step, and no thought for the last step: it adds up to three elements from beyond the
end."""

import numpy as np
from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "overread"


@njit
def _wrong(x, total):
    for i in range(0, x.size, 4):
        for k in range(i, i + 4):
            total[0] += x[k]


@njit
def _fixed(x, total):
    for i in range(0, x.size, 4):
        for k in range(i, min(i + 4, x.size)):
            total[0] += x[k]


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
