"""`i & (cols - 1)` instead of `i % cols`: the same for powers of two, which are all that was tried."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values or nonfinite"


@njit
def _wrong(x, scale, y):
    for i in range(x.size):
        y[i] = x[i] * scale[i & (scale.size - 1)]


@njit
def _fixed(x, scale, y):
    for i in range(x.size):
        y[i] = x[i] * scale[i % scale.size]


@kernel("col_scale", variant="wrong")
def wrong(x, scale, *, out):
    _wrong(*arrays(x.view(-1), scale, out.view(-1)))


@kernel("col_scale", variant="fixed")
def fixed(x, scale, *, out):
    _fixed(*arrays(x.view(-1), scale, out.view(-1)))
