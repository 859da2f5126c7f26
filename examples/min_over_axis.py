"""The minimum of every row, in Numba on the CPU. A NaN makes the minimum NaN, as in PyTorch."""

from numba import njit, prange

from assay import Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load, store


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(min=1, typical=1024)},
    inputs={"x": Tensor("rows", "cols")},
    outputs={"out": Tensor("rows")},
    independent="rows",
    operations=lambda w: w.rows * w.cols,
)
def min_over_axis(x):
    """The smallest element of each row; the first of several."""
    return x.min(-1).values


@njit(parallel=True)
def _min(x, out):
    for row in prange(x.shape[0]):
        least = load(x, (row, 0))
        for col in range(1, x.shape[1]):
            v = load(x, (row, col))
            if least == least and not v >= least:  # smaller, or NaN
                least = v
        store(out, row, least)


@kernel("min_over_axis")
def honest(x, *, out):
    _min(*arrays(x, out))
