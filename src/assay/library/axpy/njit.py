"""axpy in Numba on the CPU, one thread."""

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


def loop(alpha, x, y, z):
    for i in prange(x.size):
        store(z, i, alpha * load(x, i) + load(y, i))


_axpy = njit(loop)


@kernel("axpy")
def axpy(x, y, *, alpha, out):
    _axpy(alpha, *arrays(x, y, out))
