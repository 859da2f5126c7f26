"""The next image is taken to begin one plane further on, not all channels' planes: right for one image,
or for grey ones."""

from torch.nn.functional import conv2d

from assay import kernel

DETECTOR = "values"


def run(x, weight, bias, stride, padding, out, pitch):
    h, w = x.shape[2:]
    images = x.as_strided(x.shape, (pitch, h * w, w, 1))
    out.copy_(conv2d(images, weight, bias, stride=stride, padding=padding))


@kernel("conv2d", variant="wrong")
def wrong(x, weight, bias, *, stride, padding, out):
    run(x, weight, bias, stride, padding, out, x.shape[2] * x.shape[3])


@kernel("conv2d", variant="fixed")
def fixed(x, weight, bias, *, stride, padding, out):
    run(x, weight, bias, stride, padding, out, x.shape[1] * x.shape[2] * x.shape[3])
