"""Softmax over the last dimension."""

from assay import Axis, Tensor, op


def magnitude(x):
    # The rounding of x − max becomes relative error of e^(x − max), and where the result is subnormal it may be
    # flushed to 0.
    distance = (x.amax(-1, keepdim=True) - x).clamp(max=1e4)
    return x.softmax(-1) * (1 + distance) + 2.0**-103


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(min=1, typical=1024)},
    inputs={"x": Tensor("rows", "cols", strided=True)},
    outputs={"out": Tensor("rows", "cols")},
    independent="rows",
    operations=lambda w: 5 * w.rows * w.cols,
    magnitude=magnitude,
    roundings=4,  # an exponential within 2 ulps; its sum, the reciprocal, the product
    terms=lambda w: w.cols,
)
def softmax(x):
    """e^x / Σ e^x along each row."""
    return x.softmax(-1)
