"""The filter is mirrored once too often: the flip that turns a convolution into its transpose is already in o − t."""

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


@njit(parallel=True)
def _conv(x, weight, out, stride):
    channels, taps = weight.shape[0], weight.shape[2]
    for place in prange(out.shape[0] * out.shape[1]):
        n, k = place // out.shape[1], place % out.shape[1]
        for o in range(out.shape[2]):
            total = 0.0
            for t in range(taps):
                i = (o - t) // stride
                if i * stride == o - t and 0 <= i < x.shape[2]:
                    for c in range(channels):
                        total += load(x, (n, c, i)) * load(weight, (c, k, taps - 1 - t))  # Wrong: tap t.
            store(out, (n, k, o), total)


@kernel("../conv_transpose1d.py:conv_transpose1d")
def mirrored_filter(x, weight, *, stride, out):
    _conv(*arrays(x, weight, out), stride)
