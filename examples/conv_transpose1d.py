"""Transposed 1-D convolution with stride, in Numba on the CPU: each output gathers the inputs that reach it."""

from numba import njit, prange

from assay import Attribute, Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load, store


def out_length(w):
    return (w.length - 1) * w.stride + w.r


@op(
    axes={
        "n": Axis(typical=8),
        "c": Axis(min=1, max=4096, typical=32),
        "length": Axis(min=1, max=2**20, typical=256),
        "k": Axis(min=1, max=4096, typical=32),
        "r": Axis(min=1, max=9, typical=4),
    },
    attributes={"stride": Attribute(2, (1, 2, 3))},
    derived={"out_length": out_length},
    inputs={
        "x": Tensor("n", "c", "length", range=(-8, 8), specials=()),
        "weight": Tensor("c", "k", "r", range=(-2, 2), specials=()),
    },
    outputs={"out": Tensor("n", "k", "out_length")},
    operations=lambda w: 2 * w.n * w.k * w.c * w.length * w.r,
)
def conv_transpose1d(x, weight, *, stride):
    """Each x[n, c, i] is spread over out[n, k, i·stride + t] with weight[c, k, t]."""
    from torch.nn.functional import conv_transpose1d

    return conv_transpose1d(x, weight, stride=stride)


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
                        total += load(x, (n, c, i)) * load(weight, (c, k, t))
            store(out, (n, k, o), total)


@kernel("conv_transpose1d")
def honest(x, weight, *, stride, out):
    _conv(*arrays(x, weight, out), stride)
