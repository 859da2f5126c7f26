"""A linear layer whose weight is packed in MXINT8: x times the dequantised weight, plus bias."""

from assay import Attribute, Axis, Tensor, op
from assay.library.mx_dequantize.op import dequantized


def magnitude(x, elements, scales, bias, *, block):
    return mx_linear.reference(x.abs(), elements.abs(), scales, None if bias is None else bias.abs(), block=block)


@op(
    axes={"m": Axis(typical=1), "n": Axis(typical=4096), "k": Axis(typical=4096)},
    attributes={"block": Attribute(32, (32, 16, 64, 128, 1, 24, 37))},
    derived={"blocks": lambda w: -(-w.k // w.block)},
    require=lambda w: 1 <= w.block <= 4096,
    inputs={
        # Narrow enough that a sum over thousands of products stays finite in fp16, and that fp16 holds every weight:
        # plain PyTorch multiplies by weights in x's dtype.
        "x": Tensor("m", "k", range=(-16, 16)),
        "elements": Tensor("n", "k", dtype="int8", range=(-128, 127)),
        "scales": Tensor("n", "blocks", dtype="uint8", range=(113, 129), specials=(255,)),
        "bias": Tensor("n", optional=True, range=(-16, 16)),
    },
    outputs={"out": Tensor("m", "n")},
    independent="m",
    operations=lambda w: 2 * w.m * w.n * w.k,
    magnitude=magnitude,
    roundings=2,  # the product, the bias; and tensor cores cut off what they do not keep of a sum
    terms=lambda w: w.k,
)
def mx_linear(x, elements, scales, bias, *, block):
    """x @ weightᵀ + bias, with weight = element / 64 · 2^(scale − 127)."""
    from torch.nn.functional import linear

    return linear(x, dequantized(elements, scales, block).to(x.dtype), bias)
