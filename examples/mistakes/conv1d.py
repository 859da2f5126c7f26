"""The dilation is forgotten: the taps lie side by side, which is right for dilation 1 alone."""

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


@njit(parallel=True)
def _conv(x, weight, out, stride):
    channels, taps = weight.shape[1], weight.shape[2]
    for place in prange(out.shape[0] * out.shape[1]):
        n, k = place // out.shape[1], place % out.shape[1]
        for o in range(out.shape[2]):
            total = 0.0
            for c in range(channels):
                for i in range(taps):
                    # Wrong: tap i lies i·dilation further on.
                    total += load(x, (n, c, o * stride + i)) * load(weight, (k, c, i))
            store(out, (n, k, o), total)


@kernel("../conv1d.py:conv1d")
def ignores_dilation(x, weight, *, stride, dilation, out):
    _conv(*arrays(x, weight, out), stride)
