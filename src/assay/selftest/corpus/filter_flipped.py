"""A convolution as mathematics has it, with the filter turned around; deep learning's does not turn it,
and filters of one pixel do not show the difference."""

from torch.nn.functional import conv2d

from assay import kernel

DETECTOR = "values"


@kernel("conv2d", variant="wrong")
def wrong(x, weight, bias, *, stride, padding, out):
    out.copy_(conv2d(x, weight.flip(2, 3), bias, stride=stride, padding=padding))


@kernel("conv2d", variant="fixed")
def fixed(x, weight, bias, *, stride, padding, out):
    out.copy_(conv2d(x, weight, bias, stride=stride, padding=padding))
