"""The sum in Numba on the CPU, accumulated in float64."""

from numba import prange

from assay import kernel
from assay.backends.njit import arrays, jitted, load, store

VARIANTS = {"parallel": {"parallel": True}, "fastmath": {"fastmath": True}}


def loop(x, y):
    total = 0.0
    for i in prange(x.size):
        total += load(x, i)
    store(y, 0, total)


@kernel("sum", variants=VARIANTS)
def sum(x, *, out, parallel=False, fastmath=False):
    jitted(loop, parallel, fastmath)(*arrays(x, out.view(1)))
