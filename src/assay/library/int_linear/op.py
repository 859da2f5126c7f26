"""A linear layer whose weight is packed in integers: codes of 8 or 4 bits, one bfloat16 scale per group."""

from assay import Attribute, Axis, Tensor, op
from assay.op import NAN


def dequantized(codes, scales, bits, group, k):
    """The weight, n × k, in the dtype of `scales`. A code is stored with 2^(bits − 1) added; of two in a byte the first
    has the lower half."""
    import torch

    if bits == 4:
        codes = torch.stack((codes & 15, codes >> 4), -1).flatten(1)[:, :k]
    spread = scales[:, :, None].expand(-1, -1, min(group, max(1, k))).flatten(1)[:, :k]
    return (codes.to(scales.dtype) - 2 ** (bits - 1)) * spread


def magnitude(x, codes, scales, bias, *, bits, group):
    from torch.nn.functional import linear

    weight = dequantized(codes, scales, bits, group, x.shape[1])
    return linear(x.abs(), weight.abs(), None if bias is None else bias.abs())


@op(
    axes={"m": Axis(typical=1), "n": Axis(typical=4096), "k": Axis(typical=4096)},
    attributes={"bits": Attribute(4, (4, 8)), "group": Attribute(128, (128, 32, 64, 256, 65536, 16, 1, 24, 37))},
    derived={"width": lambda w: -(-w.k * w.bits // 8), "groups": lambda w: -(-w.k // w.group)},
    require=lambda w: w.bits in (4, 8) and 1 <= w.group <= 2**30,
    inputs={
        # Narrow enough that a sum over thousands of products stays finite in fp16.
        "x": Tensor("m", "k", range=(-16, 16)),
        "codes": Tensor("n", "width", dtype="uint8", range=(0, 255), constant=True),
        "scales": Tensor("n", "groups", dtype="bf16", range=(2.0**-12, 2.0**-4), specials=(NAN,), constant=True),
        "bias": Tensor("n", optional=True, range=(-16, 16), constant=True),
    },
    outputs={"out": Tensor("m", "n")},
    independent="m",
    operations=lambda w: 2 * w.m * w.n * w.k,
    magnitude=magnitude,
    roundings=3,  # the product, its scale, the bias; and tensor cores cut off what they do not keep of a sum
    terms=lambda w: w.k,
)
def int_linear(x, codes, scales, bias, *, bits, group):
    """x @ weightᵀ + bias, with weight = (code − 2^(bits − 1)) · scale."""
    import torch
    from torch.nn.functional import linear

    # A weight has up to 16 significant bits: it is not rounded to a 16-bit x's format before it is multiplied.
    number = torch.float64 if x.dtype == torch.float64 else torch.float32
    weight = dequantized(codes, scales.to(number), bits, group, x.shape[1])
    return linear(x.to(number), weight, None if bias is None else bias.to(number)).to(x.dtype)
