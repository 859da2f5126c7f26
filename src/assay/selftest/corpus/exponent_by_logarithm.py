"""The exponent is the floor of a float32 logarithm, which is already rounded: just below a power of two
it is one too high."""

import torch
from torch.nn.functional import pad

from assay import kernel

DETECTOR = "values"


def by_logarithm(largest):
    return torch.log2(largest.float()).floor()


def by_frexp(largest):
    return torch.where(largest > 0, torch.frexp(largest)[1] - 1, -127)


def quantize(x, block, elements, scales, exponent_of):
    (rows, cols), count = x.shape, scales.shape[1]
    tiles = pad(x.double(), (0, count * block - cols)).view(rows, count, block)
    finite = tiles.isfinite().all(-1, keepdim=True)
    tiles = torch.where(finite, tiles, 0.0)
    exponent = exponent_of(tiles.abs().amax(-1, keepdim=True)).clamp(-127, 127).long()
    power = ((1029 - exponent) << 52).view(torch.float64)  # 2^(6 − exponent)
    codes = (tiles * power).round().clamp(-127, 127)
    elements.copy_(codes.flatten(1)[:, :cols])
    scales.copy_(torch.where(finite, exponent + 127, 255).view(rows, count))


@kernel("mx_quantize", variant="wrong")
def wrong(x, *, block, elements, scales):
    quantize(x, block, elements, scales, by_logarithm)


@kernel("mx_quantize", variant="fixed")
def fixed(x, *, block, elements, scales):
    quantize(x, block, elements, scales, by_frexp)
