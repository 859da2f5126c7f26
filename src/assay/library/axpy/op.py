"""alpha·x + y, BLAS's first routine."""

from assay import Attribute, Axis, Tensor, op


@op(
    axes={"n": Axis(typical=16777216)},
    inputs={"x": Tensor("n"), "y": Tensor("n")},
    outputs={"out": Tensor("n")},
    attributes={"alpha": Attribute(0.375, (0.375, 1.0, -1.0, 3.0, 0.0, 0.1))},
    # PyTorch on the CPU rounds alpha to the tensors' format: in 16 bits only what these hold is compared.
    require=lambda w: w.alpha != 0.1 or w.dtype.name == "fp32",
    independent="n",
    operations=lambda w: 2 * w.n,
    magnitude=lambda x, y, *, alpha: (alpha * x).abs() + y.abs(),
    roundings=2,  # of the product and of alpha itself, besides the result's
    aliases={"out": "y"},
)
def axpy(x, y, *, alpha):
    """alpha·x + y; the result may overwrite y."""
    from torch import add

    return add(y, x, alpha=alpha)
