"""The number of a tap is split into row and column by the filter's height instead of its width: right for
square filters."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values"


@njit
def _conv2d(x, weight, bias, out, stride, padding, pitch):
    (n, c, h, w), (k, _, r, s), (oh, ow) = x.shape, weight.shape, out.shape[2:]
    for image in range(n):
        for f in range(k):
            for oy in range(oh):
                for ox in range(ow):
                    total = 0.0 if bias is None else float(bias[f])
                    for ch in range(c):
                        for tap in range(r * s):
                            i, j = tap // pitch, tap % pitch
                            y, z = oy * stride + i - padding, ox * stride + j - padding
                            if 0 <= y < h and 0 <= z < w:
                                total += x[image, ch, y, z] * weight[f, ch, tap // s, tap % s]
                    out[image, f, oy, ox] = total


@kernel("conv2d", variant="wrong")
def wrong(x, weight, bias, *, stride, padding, out):
    _conv2d(*arrays(x, weight, bias, out), stride, padding, weight.shape[2])


@kernel("conv2d", variant="fixed")
def fixed(x, weight, bias, *, stride, padding, out):
    _conv2d(*arrays(x, weight, bias, out), stride, padding, weight.shape[3])
