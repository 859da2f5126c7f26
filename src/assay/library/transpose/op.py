"""Transposition of a matrix. Nothing is computed, so every value must arrive exactly."""

from assay import Axis, Tensor, op


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(typical=4096)},
    inputs={"x": Tensor("rows", "cols", strided=True, range=(-3e38, 3e38))},
    outputs={"out": Tensor("cols", "rows")},
    roundings=0,
)
def transpose(x):
    """out[j, i] = x[i, j]."""
    return x.t().contiguous()
