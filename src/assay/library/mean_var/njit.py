"""Mean and variance in Numba on the CPU, one thread: two passes over each row, accumulated in float64."""

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


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


_mean_var = njit(loop)


@kernel("mean_var")
def mean_var(x, *, out, var):
    _mean_var(*arrays(x, out, var))
