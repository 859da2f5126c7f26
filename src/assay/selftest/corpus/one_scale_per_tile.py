"""A tile of 32 columns takes the scale of its first column, since a block has 32; blocks of 16 or 24 have
several in a tile."""

import torch

from assay import kernel

DETECTOR = "values or nonfinite"


def run(x, elements, scales, bias, block, out, tile):
    step = torch.exp2(scales.double() - 133).masked_fill(scales == 255, torch.nan)
    column = torch.arange(x.shape[1]) // tile * tile
    weight = elements.double() * step[:, column // block]
    out.copy_(torch.nn.functional.linear(x.double(), weight, None if bias is None else bias.double()))


@kernel("mx_linear", variant="wrong")
def wrong(x, elements, scales, bias, *, block, out):
    run(x, elements, scales, bias, block, out, 32)


@kernel("mx_linear", variant="fixed")
def fixed(x, elements, scales, bias, *, block, out):
    run(x, elements, scales, bias, block, out, 1)
