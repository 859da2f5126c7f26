"""An empty row is said to be all false: the loop compares a count of true elements, and starts from the wrong end."""

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays


@njit(parallel=True)
def _any_all(x, some, every):
    for row in prange(x.shape[0]):
        true = 0
        for col in range(x.shape[1]):
            true += x[row, col]
        some[row] = true > 0
        every[row] = true > 0 and true == x.shape[1]  # Wrong for an empty row, all of whose elements are true.


@kernel("../any_all.py:any_all")
def empty_rows_are_false(x, *, any, all):
    _any_all(*arrays(x, any, all))
