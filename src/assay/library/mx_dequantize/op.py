"""MXINT8 back to floats: every element times its block's power of two. The rule: docs/mx.md."""

from assay import Attribute, Axis, Tensor, op


def dequantized(elements, scales, block):
    """In float64: exact. 2^(scale − 133) is put together from bits; −133 is the scale's bias and the element's 2⁻⁶."""
    import torch

    power = ((scales.long() + (1023 - 133)) << 52).view(torch.float64)
    power = torch.where(scales == 255, torch.nan, power)
    spread = power[:, :, None].expand(-1, -1, block).flatten(1)
    return elements.double() * spread[:, : elements.shape[1]]


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(typical=4096)},
    attributes={"block": Attribute(32, (32, 16, 64, 128, 1, 24, 37))},
    derived={"blocks": lambda w: -(-w.cols // w.block)},
    require=lambda w: 1 <= w.block <= 4096,
    inputs={
        "elements": Tensor("rows", "cols", dtype="int8", range=(-128, 127)),
        "scales": Tensor("rows", "blocks", dtype="uint8", range=(0, 254), specials=(255,)),
    },
    outputs={"out": Tensor("rows", "cols")},
    independent="rows",
    operations=lambda w: w.rows * w.cols,
    roundings=0,
)
def mx_dequantize(elements, scales, *, block):
    """element / 64 · 2^(scale − 127), exact in fp32, rounded once to the 16-bit formats; NaN where the scale is."""
    exact = dequantized(elements, scales, block)
    return exact if elements.is_floating_point() else exact.float()
