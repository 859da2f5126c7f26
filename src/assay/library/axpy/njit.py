"""axpy in Numba on the CPU."""

from numba import prange

from assay import kernel
from assay.backends.njit import arrays, jitted, load, store

VARIANTS = {"parallel": {"parallel": True}, "fastmath": {"fastmath": True}}


def loop(alpha, x, y, z):
    for i in prange(x.size):
        store(z, i, alpha * load(x, i) + load(y, i))


@kernel("axpy", variants=VARIANTS)
def axpy(x, y, *, alpha, out, parallel=False, fastmath=False):
    jitted(loop, parallel, fastmath)(alpha, *arrays(x, y, out))
