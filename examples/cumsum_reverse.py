"""Suffix sums along rows, in Numba on the CPU: the same scan, from the end."""

from numba import njit, prange

from assay import Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load, store


@op(
    axes={"rows": Axis(typical=1024), "cols": Axis(min=1, typical=4096)},
    inputs={"x": Tensor("rows", "cols", range=(-10, 10))},
    outputs={"out": Tensor("rows", "cols")},
    independent="rows",
    operations=lambda w: w.rows * w.cols,
)
def cumsum_reverse(x):
    """out[r, c] = Σ x[r, c…]."""
    return x.flip(-1).cumsum(-1).flip(-1)


@njit(parallel=True)
def _scan(x, out):
    for row in prange(x.shape[0]):
        total = 0.0
        for col in range(x.shape[1] - 1, -1, -1):
            total += load(x, (row, col))
            store(out, (row, col), total)


@kernel("cumsum_reverse")
def honest(x, *, out):
    _scan(*arrays(x, out))
