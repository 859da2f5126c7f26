"""Running products along rows, in Numba on the CPU, kept in float64 and rounded when stored."""

from numba import njit, prange

from assay import Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load, store


@op(
    # Short rows of numbers near 1: a longer product would overflow.
    axes={"rows": Axis(typical=65536), "cols": Axis(min=1, max=128, typical=64)},
    inputs={"x": Tensor("rows", "cols", range=(0.5, 1.5))},
    outputs={"out": Tensor("rows", "cols")},
    dtypes=("fp32", "bf16"),
    independent="rows",
    operations=lambda w: w.rows * w.cols,
    roundings=64,  # half an ulp for each of up to 128 products
)
def cumprod(x):
    """out[r, c] = Π x[r, 0…c]."""
    return x.cumprod(-1)


@njit(parallel=True)
def _scan(x, out):
    for row in prange(x.shape[0]):
        product = 1.0
        for col in range(x.shape[1]):
            product *= load(x, (row, col))
            store(out, (row, col), product)


@kernel("cumprod")
def honest(x, *, out):
    _scan(*arrays(x, out))
