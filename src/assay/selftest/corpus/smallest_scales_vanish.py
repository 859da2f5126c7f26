"""2^(scale − 133) is put together as a float's exponent bits, which end at 2⁻¹²⁶: with scales below 7
whole blocks become 0, and float32 could hold them."""

import torch

from assay import kernel

DETECTOR = "values"


def run(elements, scales, block, out, step):
    spread = step(scales.int()).repeat_interleave(block, 1)[:, : elements.shape[1]]
    spread = spread.masked_fill(scales.repeat_interleave(block, 1)[:, : elements.shape[1]] == 255, torch.nan)
    torch.mul(elements.float(), spread, out=out)


def from_bits(code):
    return ((code - 6).clamp(min=0) << 23).view(torch.float32)


def exact(code):
    return torch.exp2(code.double() - 133).float()


@kernel("mx_dequantize", variant="wrong", dtypes=("fp32",))
def wrong(elements, scales, *, block, out):
    run(elements, scales, block, out, from_bits)


@kernel("mx_dequantize", variant="fixed", dtypes=("fp32",))
def fixed(elements, scales, *, block, out):
    run(elements, scales, block, out, exact)
