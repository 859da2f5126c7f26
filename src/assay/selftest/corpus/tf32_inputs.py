"""The inputs are rounded to TF32, as convolutions on tensor cores do by default: ten bits of fraction
where float32 was asked for."""

import torch
from torch.nn.functional import conv2d

from assay import kernel

DETECTOR = "values"


def tf32(v):
    return ((v.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


@kernel("conv2d", variant="wrong")
def wrong(x, weight, bias, *, stride, padding, out):
    out.copy_(conv2d(tf32(x), tf32(weight), bias, stride=stride, padding=padding))


@kernel("conv2d", variant="fixed")
def fixed(x, weight, bias, *, stride, padding, out):
    out.copy_(conv2d(x, weight, bias, stride=stride, padding=padding))
