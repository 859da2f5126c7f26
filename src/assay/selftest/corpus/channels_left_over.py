"""From eight channels on they are taken eight at a time, and those beyond the last eight are left out."""

from torch.nn.functional import conv2d

from assay import kernel

DETECTOR = "values"


def run(x, weight, bias, stride, padding, out, channels):
    out.copy_(conv2d(x[:, :channels], weight[:, :channels], bias, stride=stride, padding=padding))


@kernel("conv2d", variant="wrong")
def wrong(x, weight, bias, *, stride, padding, out):
    c = x.shape[1]
    run(x, weight, bias, stride, padding, out, c // 8 * 8 if c >= 8 else c)


@kernel("conv2d", variant="fixed")
def fixed(x, weight, bias, *, stride, padding, out):
    run(x, weight, bias, stride, padding, out, x.shape[1])
