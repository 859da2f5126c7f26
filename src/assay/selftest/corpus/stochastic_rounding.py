"""Rounds up or down at random, as training recipes do: right on average, and for no single element."""

import torch
from torch.nn.functional import pad

from assay import kernel

DETECTOR = "values or unstable"


def quantize(x, block, elements, scales, noise):
    (rows, cols), count = x.shape, scales.shape[1]
    tiles = pad(x.double(), (0, count * block - cols)).view(rows, count, block)
    finite = tiles.isfinite().all(-1, keepdim=True)
    tiles = torch.where(finite, tiles, 0.0)
    exponent = ((tiles.abs().amax(-1, keepdim=True).view(torch.int64) >> 52) - 1023).clamp(-127, 127)
    power = ((1029 - exponent) << 52).view(torch.float64)  # 2^(6 − exponent)
    v = tiles * power
    codes = torch.floor(v + torch.rand_like(v)) if noise else v.round()
    codes = codes.clamp(-127, 127)
    elements.copy_(codes.flatten(1)[:, :cols])
    scales.copy_(torch.where(finite, exponent + 127, 255).view(rows, count))


@kernel("mx_quantize", variant="wrong")
def wrong(x, *, block, elements, scales):
    quantize(x, block, elements, scales, True)


@kernel("mx_quantize", variant="fixed")
def fixed(x, *, block, elements, scales):
    quantize(x, block, elements, scales, False)
