"""The running total over tiles of 64 products is kept in the inputs' float16: every tile rounds it to
eleven bits."""

import torch

from assay import kernel

DETECTOR = "values"
DTYPE = "fp16"


def run(x, elements, scales, bias, block, out, kept):
    step = torch.exp2(scales.double() - 133).masked_fill(scales == 255, torch.nan)
    weight = elements.double() * step.repeat_interleave(block, 1)[:, : elements.shape[1]]
    total = torch.zeros(out.shape, dtype=kept, device=out.device)
    for first in range(0, x.shape[1], 64):
        here = slice(first, first + 64)
        total += (x[:, here].double() @ weight[:, here].t()).to(kept)
    out.copy_(total if bias is None else total + bias)


@kernel("mx_linear", variant="wrong")
def wrong(x, elements, scales, bias, *, block, out):
    run(x, elements, scales, bias, block, out, torch.float16)


@kernel("mx_linear", variant="fixed")
def fixed(x, elements, scales, bias, *, block, out):
    run(x, elements, scales, bias, block, out, torch.float32)
