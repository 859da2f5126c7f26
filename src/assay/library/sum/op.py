"""The sum of all elements of a vector."""

from assay import Axis, Tensor, op


@op(
    axes={"n": Axis(typical=16777216)},
    # Small enough that fp16 holds the sum of a few thousand of them.
    inputs={"x": Tensor("n", range=(-100.0, 100.0))},
    outputs={"out": Tensor()},
    operations=lambda w: w.n,
    magnitude=lambda x: x.abs().sum(),
    terms=lambda w: w.n,
)
def sum(x):
    """Σx: one number; 0 for an empty vector."""
    return x.sum()
