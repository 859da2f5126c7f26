"""int4 weights, one a byte, times a scale per row, in Numba on the CPU."""

from numba import njit, prange

from assay import Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load, store


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(min=1, typical=4096)},
    inputs={
        "q": Tensor("rows", "cols", dtype="int4"),
        "scale": Tensor("rows", range=(0, 100), specials=()),
    },
    outputs={"out": Tensor("rows", "cols")},
    independent="rows",
    operations=lambda w: w.rows * w.cols,
)
def int4_dequantize(q, scale):
    """q·scale, q being −8 … 7."""
    return q * scale[:, None]


@njit(parallel=True)
def _dequantize(q, scale, out):
    for row in prange(q.shape[0]):
        for col in range(q.shape[1]):
            store(out, (row, col), q[row, col] * load(scale, row))


@kernel("int4_dequantize")
def honest(q, scale, *, out):
    _dequantize(*arrays(q, scale, out))
