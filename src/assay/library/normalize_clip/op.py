"""Normalise by a given mean and standard deviation, then clip to an interval."""

from assay import Attribute, Axis, Tensor, op


def scale(x, *, mean, std, low, high):
    """The result's own, and that of the mean, which float32 does not hold exactly."""
    return ((x - mean) / std).clamp(low, high).abs() + abs(mean) / std


@op(
    axes={"n": Axis(typical=16777216)},
    inputs={"x": Tensor("n")},
    outputs={"out": Tensor("n")},
    attributes={
        "mean": Attribute(0.449, (0.0, 0.449, -1.5, 25.0)),
        "std": Attribute(0.226, (1.0, 0.226, 0.01, 3.0, 100.0)),
        "low": Attribute(-2.0, (-2.0, 0.0, -1000.0)),
        "high": Attribute(2.0, (2.0, 0.7, 1000.0)),
    },
    independent="n",
    operations=lambda w: 4 * w.n,
    magnitude=scale,
    roundings=2,  # the difference, the quotient or a rounded reciprocal and its product
)
def normalize_clip(x, *, mean, std, low, high):
    """(x − mean)/std, clipped to [low, high]; a NaN stays NaN."""
    wide = x if x.element_size() > 2 else x.float()
    return ((wide - mean) / std).clamp(low, high).to(x.dtype)
