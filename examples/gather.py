"""Elements of each row by index, in Numba on the CPU."""

from numba import njit, prange

from assay import Axis, Tensor, kernel, op
from assay.backends.njit import arrays


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(min=1, typical=1024), "picked": Axis(min=1, typical=64)},
    inputs={
        "x": Tensor("rows", "cols"),
        "index": Tensor("rows", "picked", dtype="int64", index="cols"),
    },
    outputs={"out": Tensor("rows", "picked")},
    independent="rows",
    traffic=lambda w: w.rows * w.picked * (8 + 2 * w.dtype.itemsize),
)
def gather(x, index):
    """out[r, j] = x[r, index[r, j]]."""
    return x.gather(1, index)


@njit(parallel=True)
def _gather(x, index, out):
    for row in prange(out.shape[0]):
        for j in range(out.shape[1]):
            out[row, j] = x[row, index[row, j]]  # bits are copied: 16-bit floats need no conversion


@kernel("gather")
def honest(x, index, *, out):
    _gather(*arrays(x, index, out))
