"""The mean over the first axis, in Numba on the CPU: column sums in float64, row after row as memory lies."""

import numpy as np
from numba import njit

from assay import Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load, store


@op(
    axes={"rows": Axis(min=1, typical=4096), "cols": Axis(min=1, typical=1024)},
    inputs={"x": Tensor("rows", "cols", range=(-1000, 1000))},
    outputs={"out": Tensor("cols")},
    operations=lambda w: w.rows * w.cols,
)
def mean_over_axis(x):
    """The mean of every column."""
    return x.mean(0)


@njit
def _mean(x, out):
    total = np.zeros(x.shape[1], np.float64)
    for row in range(x.shape[0]):
        for col in range(x.shape[1]):
            total[col] += load(x, (row, col))
    for col in range(x.shape[1]):
        store(out, col, total[col] / x.shape[0])


@kernel("mean_over_axis")
def honest(x, *, out):
    _mean(*arrays(x, out))
