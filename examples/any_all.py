"""Is any element of a row true, are all of them? Booleans in, booleans out, in Numba on the CPU."""

from numba import njit, prange

from assay import Axis, Tensor, kernel, op
from assay.backends.njit import arrays


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(typical=1024)},
    inputs={"x": Tensor("rows", "cols", dtype="bool")},
    outputs={"any": Tensor("rows", dtype="bool"), "all": Tensor("rows", dtype="bool")},
    dtypes=("bool",),
    independent="rows",
    operations=lambda w: w.rows * w.cols,
)
def any_all(x):
    """Of an empty row, none is true and all are."""
    return x.any(-1), x.all(-1)


@njit(parallel=True)
def _any_all(x, some, every):
    for row in prange(x.shape[0]):
        one, none_false = False, True
        for col in range(x.shape[1]):
            one |= x[row, col]
            none_false &= x[row, col]
        some[row], every[row] = one, none_false


@kernel("any_all")
def honest(x, *, any, all):
    _any_all(*arrays(x, any, all))
