"""The window is centred by half the filter's size, which is the padding of a 3 × 3 filter with padding 1
and of no other."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values"


@njit
def _conv2d(x, weight, bias, out, stride, padding, half):
    (n, c, h, w), (k, _, r, s), (oh, ow) = x.shape, weight.shape, out.shape[2:]
    for image in range(n):
        for f in range(k):
            for oy in range(oh):
                for ox in range(ow):
                    total = 0.0 if bias is None else float(bias[f])
                    for ch in range(c):
                        for i in range(r):
                            for j in range(s):
                                y = oy * stride + i - (r // 2 if half else padding)
                                z = ox * stride + j - (s // 2 if half else padding)
                                if 0 <= y < h and 0 <= z < w:
                                    total += x[image, ch, y, z] * weight[f, ch, i, j]
                    out[image, f, oy, ox] = total


@kernel("conv2d", variant="wrong")
def wrong(x, weight, bias, *, stride, padding, out):
    _conv2d(*arrays(x, weight, bias, out), stride, padding, True)


@kernel("conv2d", variant="fixed")
def fixed(x, weight, bias, *, stride, padding, out):
    _conv2d(*arrays(x, weight, bias, out), stride, padding, False)
