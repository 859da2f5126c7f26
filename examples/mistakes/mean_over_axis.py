"""The column sums are divided by the number of columns: right for a square matrix."""

import numpy as np
from numba import njit

from assay import kernel
from assay.backends.njit import arrays, load, store


@njit
def _mean(x, out):
    total = np.zeros(x.shape[1], np.float64)
    for row in range(x.shape[0]):
        for col in range(x.shape[1]):
            total[col] += load(x, (row, col))
    for col in range(x.shape[1]):
        store(out, col, total[col] / x.shape[1])  # Wrong: a column has shape[0] elements.


@kernel("../mean_over_axis.py:mean_over_axis")
def divides_by_the_other_axis(x, *, out):
    _mean(*arrays(x, out))
