"""alpha·x + y, BLAS's first routine."""

from assay import Attribute, Axis, Tensor, op


@op(
    axes={"n": Axis(typical=16777216)},
    inputs={"x": Tensor("n"), "y": Tensor("n")},
    outputs={"out": Tensor("n")},
    # All exact in fp16 and bf16, to which PyTorch on the CPU rounds alpha.
    attributes={"alpha": Attribute(0.375, (0.375, 1.0, -1.0, 3.0, 0.0))},
    independent="n",
    operations=lambda w: 2 * w.n,
    magnitude=lambda x, y, *, alpha: (alpha * x).abs() + y.abs(),
    aliases={"out": "y"},
)
def axpy(x, y, *, alpha):
    """alpha·x + y; the result may overwrite y."""
    from torch import add

    return add(y, x, alpha=alpha)
