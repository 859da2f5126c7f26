"""Quantisation to MXINT8 (OCP MX v1.0): blocks of int8 elements that share a power of two. The rule: docs/mx.md."""

from assay import Attribute, Axis, Tensor, op


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(typical=4096)},
    attributes={"block": Attribute(32, (32, 16, 64, 128, 1, 24, 37))},
    derived={"blocks": lambda w: -(-w.cols // w.block)},
    require=lambda w: 1 <= w.block <= 4096,
    inputs={"x": Tensor("rows", "cols", range=(-3.4e38, 3.4e38))},
    outputs={"elements": Tensor("rows", "cols", dtype="int8"), "scales": Tensor("rows", "blocks", dtype="uint8")},
    independent="rows",
    operations=lambda w: 4 * w.rows * w.cols,  # compare with the largest, scale, round, saturate
    roundings=0,
)
def mx_quantize(x, *, block):
    """Codes and shared exponents: scale = 2^⌊log₂ max|x|⌋ of each block, code = x / scale · 64 to nearest even."""
    import torch
    from torch.nn.functional import pad

    (rows, cols), count = x.shape, -(-x.shape[1] // block)
    tiles = pad(x.double(), (0, count * block - cols)).view(rows, count, block)
    finite = tiles.isfinite().all(-1, keepdim=True)
    tiles = torch.where(finite, tiles, 0.0)
    # The exponent is in the bits of the largest; that of zero is below every clamp.
    exponent = ((tiles.abs().amax(-1, keepdim=True).view(torch.int64) >> 52) - 1023).clamp(-127, 127)
    power = ((1023 + 6 - exponent) << 52).view(torch.float64)  # 2^(6 − exponent)
    codes = (tiles * power).round().clamp(-127, 127).to(torch.int8)
    scales = torch.where(finite, exponent + 127, 255).to(torch.uint8)
    return codes.view(rows, count * block)[:, :cols], scales.view(rows, count)
