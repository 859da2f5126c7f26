"""The place of the smallest element of every row, in Numba on the CPU: chunks, so that each stays in registers."""

import numpy as np
from numba import njit, prange

from assay import Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(min=1, typical=1024)},
    inputs={"x": Tensor("rows", "cols", specials=())},
    outputs={"out": Tensor("rows", dtype="int64")},
    independent="rows",
    operations=lambda w: w.rows * w.cols,
)
def argmin(x):
    """The index of the smallest element of each row, the first of several."""
    return x.argmin(-1)


@njit(parallel=True)
def _argmin(x, out):
    for row in prange(x.shape[0]):
        least, place = np.inf, 0
        for start in range(0, x.shape[1], 16):
            for lane in range(min(16, x.shape[1] - start)):
                v = load(x, (row, start + lane))
                if v < least:
                    least, place = v, start + lane
        out[row] = place


@kernel("argmin")
def honest(x, *, out):
    _argmin(*arrays(x, out))
