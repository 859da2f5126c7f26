"""Mean and variance in Numba on the CPU: two passes over each row, accumulated in float64."""

from numba import prange

from assay import kernel
from assay.backends.njit import arrays, jitted, load, store

VARIANTS = {"parallel": {"parallel": True}, "fastmath": {"fastmath": True}}


def loop(x, mean, var):
    rows, cols = x.shape
    for row in prange(rows):
        total = 0.0
        for i in range(cols):
            total += load(x, (row, i))
        mu = total / cols
        squares = 0.0
        for i in range(cols):
            squares += (load(x, (row, i)) - mu) ** 2
        store(mean, row, mu)
        store(var, row, squares / cols)


@kernel("mean_var", variants=VARIANTS)
def mean_var(x, *, out, var, parallel=False, fastmath=False):
    jitted(loop, parallel, fastmath)(*arrays(x, out, var))
