"""Sign and absolute value are taken apart in int8, where −128 has no absolute value: it comes out as +128."""

import torch

from assay import kernel

DETECTOR = "values or nonfinite"


def run(elements, scales, block, out, magnitude):
    step = torch.exp2(scales.double() - 133).masked_fill(scales == 255, torch.nan)
    spread = step.repeat_interleave(block, 1)[:, : elements.shape[1]]
    out.copy_(torch.sign(elements) * magnitude.double() * spread)


@kernel("mx_dequantize", variant="wrong")
def wrong(elements, scales, *, block, out):
    run(elements, scales, block, out, elements.abs())


@kernel("mx_dequantize", variant="fixed")
def fixed(elements, scales, *, block, out):
    run(elements, scales, block, out, elements.short().abs())
