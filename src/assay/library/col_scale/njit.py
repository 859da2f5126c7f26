"""Column scaling in Numba on the CPU."""

from numba import prange

from assay import kernel
from assay.backends.njit import arrays, jitted, load, store

VARIANTS = {"parallel": {"parallel": True}, "fastmath": {"fastmath": True}}


def loop(x, scale, y):
    rows, cols = x.shape
    for r in prange(rows):
        for c in range(cols):
            store(y, (r, c), load(x, (r, c)) * load(scale, c))


@kernel("col_scale", variants=VARIANTS)
def col_scale(x, scale, *, out, parallel=False, fastmath=False):
    jitted(loop, parallel, fastmath)(*arrays(x, scale, out))
