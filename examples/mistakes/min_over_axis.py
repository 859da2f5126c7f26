"""A comparison with NaN is false, so a NaN after the first element is passed over."""

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


@njit(parallel=True)
def _min(x, out):
    for row in prange(x.shape[0]):
        least = load(x, (row, 0))
        for col in range(1, x.shape[1]):
            v = load(x, (row, col))
            if v < least:  # Wrong: NaN is not less than anything.
                least = v
        store(out, row, least)


@kernel("../min_over_axis.py:min_over_axis")
def drops_nan(x, *, out):
    _min(*arrays(x, out))
