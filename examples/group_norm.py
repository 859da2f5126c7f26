"""Group normalisation, in Numba on the CPU: mean and variance of each group in two passes, in float64."""

import math

from numba import njit, prange

from assay import NAN, Attribute, Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load, store


@op(
    axes={
        "n": Axis(typical=16),
        "groups": Axis(min=1, max=1024, typical=8),
        "channels": Axis(min=1, max=1024, typical=8),
        "pixels": Axis(min=1, typical=784),
    },
    inputs={
        "x": Tensor("n", "groups", "channels", "pixels", range=(-1000, 1000), specials=(NAN,)),
        "weight": Tensor("groups", "channels", range=(-10, 10), specials=()),
        "bias": Tensor("groups", "channels", range=(-10, 10), specials=()),
    },
    attributes={"eps": Attribute(1e-5, (1e-5, 1e-3))},
    outputs={"out": Tensor("n", "groups", "channels", "pixels")},
    independent="n",
    operations=lambda w: 8 * w.n * w.groups * w.channels * w.pixels,
)
def group_norm(x, weight, bias, *, eps):
    """(x − mean) / √(variance + eps) · weight + bias, mean and variance over the channels and pixels of a group."""
    import torch

    flat = torch.group_norm(x.flatten(1, 2), x.shape[1], weight.flatten(), bias.flatten(), eps)
    return flat.view(x.shape)


@njit(parallel=True)
def _norm(x, weight, bias, out, eps):
    n, groups, channels, pixels = x.shape
    for place in prange(n * groups):
        i, g = place // groups, place % groups
        total = 0.0
        for c in range(channels):
            for p in range(pixels):
                total += load(x, (i, g, c, p))
        mean = total / (channels * pixels)
        total = 0.0
        for c in range(channels):
            for p in range(pixels):
                total += (load(x, (i, g, c, p)) - mean) ** 2
        rstd = 1 / math.sqrt(total / (channels * pixels) + eps)
        for c in range(channels):
            for p in range(pixels):
                v = (load(x, (i, g, c, p)) - mean) * rstd
                store(out, (i, g, c, p), v * load(weight, (g, c)) + load(bias, (g, c)))


@kernel("group_norm")
def honest(x, weight, bias, *, eps, out):
    _norm(*arrays(x, weight, bias, out), eps)
