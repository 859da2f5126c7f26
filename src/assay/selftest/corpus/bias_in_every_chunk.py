"""Channels are summed in chunks of 16 to keep the work space small, and each chunk adds the bias again."""

from torch.nn.functional import conv2d

from assay import kernel

DETECTOR = "values"


def run(x, weight, bias, stride, padding, out, again):
    total = conv2d(x[:, :16].double(), weight[:, :16].double(), bias, stride=stride, padding=padding)
    for first in range(16, x.shape[1], 16):
        here = slice(first, first + 16)
        total += conv2d(x[:, here].double(), weight[:, here].double(), again, stride=stride, padding=padding)
    out.copy_(total)


@kernel("conv2d", variant="wrong")
def wrong(x, weight, bias, *, stride, padding, out):
    bias = None if bias is None else bias.double()
    run(x, weight, bias, stride, padding, out, bias)


@kernel("conv2d", variant="fixed")
def fixed(x, weight, bias, *, stride, padding, out):
    bias = None if bias is None else bias.double()
    run(x, weight, bias, stride, padding, out, None)
