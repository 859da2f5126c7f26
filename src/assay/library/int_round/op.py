"""Rounding to integers with a scale (`int:WIDTH` of docs/formats.md): what a model in few bits computes with."""

from assay import Attribute, Axis, Tensor, op

LARGEST = (2**24 - 1) * 2**104
"""The largest finite float32."""


def _largest_scale(bits):
    most = LARGEST // (2 ** (bits - 1) - 1)
    spare = most.bit_length() - 8
    return float(most >> spare << spare)


LARGEST_SCALE = {bits: _largest_scale(bits) for bits in range(2, 9)}
"""By bits: the largest of 8 significant bits by which the largest code gives a product within float32's range."""


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(typical=4096)},
    attributes={"bits": Attribute(8, (8, 4, 2, 3, 5, 6, 7))},
    require=lambda w: 2 <= w.bits <= 8,
    inputs={"x": Tensor("rows", "cols", range=(-3.4e38, 3.4e38))},
    outputs={"out": Tensor("rows", "cols")},
    independent="rows",
    operations=lambda w: 5 * w.rows * w.cols,  # compare with the largest, divide, round, saturate, multiply
    roundings=0,
)
def int_round(x, *, bits):
    """code · scale of each element, with a scale for each row: max|x| / (2^(bits − 1) − 1), rounded to a bfloat16 of at
    least 2^−126, and code = x / scale to nearest even. A row with a NaN or an Inf is NaN."""
    import torch

    if not x.numel():
        return x.clone()
    most = 2 ** (bits - 1) - 1
    # In float64 no quotient of these numbers is rounded onto a tie that it is not on.
    wide = x.double()
    largest = wide.abs().amax(1, keepdim=True)
    kept = (largest / most).view(torch.int64)  # of 53 significant bits the first 8, to nearest even
    kept = (kept + (1 << 44) - 1 + ((kept >> 45) & 1)) >> 45 << 45
    scale = kept.view(torch.float64).clamp(2.0**-126, LARGEST_SCALE[bits])
    codes = (wide / scale).round().clamp(-most, most)
    return torch.where(largest.isfinite(), codes * scale + 0.0, torch.nan).to(x.dtype)  # −0 + 0 is +0
