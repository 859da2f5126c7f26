"""The weight is unpacked once and kept by its address, since weights do not change; but they do, when
training updates them in place or memory is used again."""

import torch

from assay import kernel

DETECTOR = "values or stale or unwritten"
unpacked: dict = {}


def unpack(elements, scales, block):
    step = torch.exp2(scales.double() - 133).masked_fill(scales == 255, torch.nan)
    return elements.double() * step.repeat_interleave(block, 1)[:, : elements.shape[1]]


def linear(x, weight, bias, out):
    out.copy_(torch.nn.functional.linear(x.double(), weight, None if bias is None else bias.double()))


@kernel("mx_linear", variant="wrong")
def wrong(x, elements, scales, bias, *, block, out):
    key = elements.data_ptr(), elements.shape, block
    if key not in unpacked:
        unpacked[key] = unpack(elements, scales, block)
    linear(x, unpacked[key], bias, out)


@kernel("mx_linear", variant="fixed")
def fixed(x, elements, scales, bias, *, block, out):
    linear(x, unpack(elements, scales, block), bias, out)
