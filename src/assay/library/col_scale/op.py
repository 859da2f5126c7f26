"""Each column of a matrix times a factor of its own."""

from assay import Axis, Tensor, op

SMALL = (-200.0, 200.0)  # products stay within fp16


@op(
    axes={"rows": Axis(typical=8192), "cols": Axis(typical=4096)},
    inputs={"x": Tensor("rows", "cols", range=SMALL), "scale": Tensor("cols", range=SMALL)},
    outputs={"out": Tensor("rows", "cols")},
    independent="rows",
    operations=lambda w: w.rows * w.cols,
)
def col_scale(x, scale):
    """x[r, c]·scale[c]."""
    return x * scale
