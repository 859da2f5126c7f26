"""1-D convolution with stride and dilation, without padding, in Numba on the CPU."""

from numba import njit, prange

from assay import Attribute, Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load, store


def out_length(w):
    return (w.length - w.dilation * (w.r - 1) - 1) // w.stride + 1


@op(
    axes={
        "n": Axis(typical=16),
        "c": Axis(min=1, max=4096, typical=64),
        "length": Axis(min=1, max=2**20, typical=512),
        "k": Axis(min=1, max=4096, typical=128),
        "r": Axis(min=1, max=9, typical=3),
    },
    attributes={"stride": Attribute(1, (1, 2, 3)), "dilation": Attribute(1, (1, 2, 4))},
    derived={"out_length": out_length},
    require=lambda w: w.length > w.dilation * (w.r - 1),
    inputs={
        # An infinite pixel times a zero weight is NaN in one algorithm and nothing in another.
        "x": Tensor("n", "c", "length", range=(-8, 8), specials=()),
        "weight": Tensor("k", "c", "r", range=(-2, 2), specials=()),
    },
    outputs={"out": Tensor("n", "k", "out_length")},
    operations=lambda w: 2 * w.n * w.k * out_length(w) * w.c * w.r,
)
def conv1d(x, weight, *, stride, dilation):
    """Σ x[n, c, o·stride + i·dilation]·weight[k, c, i]."""
    from torch.nn.functional import conv1d

    return conv1d(x, weight, stride=stride, dilation=dilation)


@njit(parallel=True)
def _conv(x, weight, out, stride, dilation):
    channels, taps = weight.shape[1], weight.shape[2]
    for place in prange(out.shape[0] * out.shape[1]):
        n, k = place // out.shape[1], place % out.shape[1]
        for o in range(out.shape[2]):
            total = 0.0
            for c in range(channels):
                for i in range(taps):
                    total += load(x, (n, c, o * stride + i * dilation)) * load(weight, (k, c, i))
            store(out, (n, k, o), total)


@kernel("conv1d")
def honest(x, weight, *, stride, dilation, out):
    _conv(*arrays(x, weight, out), stride, dilation)
