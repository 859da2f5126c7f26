"""Softmax over the last dimension."""

from assay import Axis, Tensor, op


def magnitude(x):
    # Two rounded numbers are divided, e^(x − max) turns the rounding of x − max into relative error,
    # and where the result is subnormal it may be flushed to 0.
    distance = (x.amax(-1, keepdim=True) - x).clamp(max=1e4)
    return x.softmax(-1) * (2 + distance) + 2.0**-103


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(min=1, typical=1024)},
    inputs={"x": Tensor("rows", "cols", strided=True)},
    outputs={"out": Tensor("rows", "cols")},
    operations=lambda w: 5 * w.rows * w.cols,
    magnitude=magnitude,
)
def softmax(x):
    """e^x / Σ e^x along each row."""
    return x.softmax(-1)
