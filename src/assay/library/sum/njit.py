"""The sum in Numba on the CPU, one thread, accumulated in float64."""

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


def loop(x, y):
    total = 0.0
    for i in prange(x.size):
        total += load(x, i)
    store(y, 0, total)


_sum = njit(loop)


@kernel("sum")
def sum(x, *, out):
    _sum(*arrays(x, out.view(1)))
