"""The last block is moved back to be full and computes a few elements again, which does no harm unless
the result overwrites y: then they get alpha·x twice."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values"


@njit
def _axpy(x, y, out, alpha, moved):
    for start in range(0, x.size, 256):
        first = max(0, min(start, x.size - 256)) if moved else start
        for i in range(first, min(first + 256, x.size)):
            out[i] = alpha * x[i] + y[i]


@kernel("axpy", variant="wrong")
def wrong(x, y, *, alpha, out):
    _axpy(*arrays(x, y, out), alpha, True)


@kernel("axpy", variant="fixed")
def fixed(x, y, *, alpha, out):
    _axpy(*arrays(x, y, out), alpha, False)
