"""The stride is applied to the rows and forgotten in the columns: with stride 1 nobody notices."""

from torch.nn.functional import conv2d

from assay import kernel

DETECTOR = "values"


def run(x, weight, bias, strides, padding, out):
    out.copy_(conv2d(x, weight, bias, stride=strides, padding=padding)[..., : out.shape[3]])


@kernel("conv2d", variant="wrong")
def wrong(x, weight, bias, *, stride, padding, out):
    run(x, weight, bias, (stride, 1), padding, out)


@kernel("conv2d", variant="fixed")
def fixed(x, weight, bias, *, stride, padding, out):
    run(x, weight, bias, (stride, stride), padding, out)
