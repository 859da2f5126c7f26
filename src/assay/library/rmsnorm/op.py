"""RMSNorm over the last dimension: x divided by its root mean square, times a weight."""

from assay import NAN, Attribute, Axis, Tensor, op


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(min=1, typical=1024)},
    inputs={
        # An infinite element makes the root infinite: PyTorch's CUDA kernel then gives NaN all along the row.
        "x": Tensor("rows", "cols", strided=True, specials=(NAN,)),
        # x over its root mean square reaches √cols: with a weight of 100 fp16 holds it up to 400k columns.
        "weight": Tensor("cols", optional=True, range=(-100, 100)),
    },
    outputs={"out": Tensor("rows", "cols")},
    attributes={"eps": Attribute(1e-6, choices=(1e-6, 1e-5))},
    independent="rows",
    operations=lambda w: 4 * w.rows * w.cols,
    roundings=4,  # half of what the sum of squares loses (1), a reciprocal root within 2 ulps, two products
    terms=lambda w: w.cols,
)
def rmsnorm(x, weight, *, eps):
    """x·rsqrt(mean(x²) + eps)·weight along each row."""
    from torch.nn.functional import rms_norm

    return rms_norm(x, (x.shape[-1],), weight, eps)
