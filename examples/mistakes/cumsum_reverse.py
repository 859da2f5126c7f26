"""The loop stops one column early: `range(n - 1, 0, -1)` never reaches 0."""

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


@njit(parallel=True)
def _scan(x, out):
    for row in prange(x.shape[0]):
        total = 0.0
        for col in range(x.shape[1] - 1, 0, -1):  # Wrong: down to −1.
            total += load(x, (row, col))
            store(out, (row, col), total)


@kernel("../cumsum_reverse.py:cumsum_reverse")
def stops_before_the_first(x, *, out):
    _scan(*arrays(x, out))
