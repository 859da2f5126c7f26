"""1×1 convolution with bias: a matrix product per pixel, in Numba on the CPU."""

from numba import njit, prange

from assay import Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load, store


@op(
    axes={
        "n": Axis(typical=8),
        "c": Axis(min=1, max=8192, typical=64),
        "pixels": Axis(min=1, max=2**24, typical=784),
        "k": Axis(min=1, max=8192, typical=128),
    },
    inputs={
        "x": Tensor("n", "c", "pixels", range=(-8, 8), specials=()),
        "weight": Tensor("k", "c", range=(-2, 2), specials=()),
        "bias": Tensor("k", optional=True, range=(-8, 8)),
    },
    outputs={"out": Tensor("n", "k", "pixels")},
    independent="n",
    operations=lambda w: 2 * w.n * w.k * w.c * w.pixels,
)
def conv2d_pointwise(x, weight, bias):
    """Σ weight[k, c]·x[n, c, p] + bias[k]; height and width are one axis, which they can always be made."""
    from torch.nn.functional import conv1d

    return conv1d(x, weight[:, :, None], bias)


@njit(parallel=True)
def _conv(x, weight, bias, out):
    for place in prange(out.shape[0] * out.shape[1]):
        n, k = place // out.shape[1], place % out.shape[1]
        for p in range(out.shape[2]):
            total = 0.0
            for c in range(x.shape[1]):
                total += load(weight, (k, c)) * load(x, (n, c, p))
            if bias is not None:
                total += load(bias, k)
            store(out, (n, k, p), total)


@kernel("conv2d_pointwise")
def honest(x, weight, bias, *, out):
    _conv(*arrays(x, weight, bias, out))
