"""127 is subtracted from the scale while it is still a uint8: what should be negative wraps around to
something huge."""

import torch

from assay import kernel

DETECTOR = "nonfinite or values"


def run(x, elements, scales, bias, block, out, exponent):
    step = torch.exp2(exponent.double() - 6).masked_fill(scales == 255, torch.nan)
    weight = elements.double() * step.repeat_interleave(block, 1)[:, : elements.shape[1]]
    out.copy_(torch.nn.functional.linear(x.double(), weight, None if bias is None else bias.double()))


@kernel("mx_linear", variant="wrong")
def wrong(x, elements, scales, bias, *, block, out):
    run(x, elements, scales, bias, block, out, scales - 127)


@kernel("mx_linear", variant="fixed")
def fixed(x, elements, scales, bias, *, block, out):
    run(x, elements, scales, bias, block, out, scales.int() - 127)
