"""Two-dimensional convolution (cross-correlation, as in PyTorch) of NCHW images, zero padded."""

from assay import Attribute, Axis, Tensor, op


def out_height(w):
    return (w.h + 2 * w.padding - w.r) // w.stride + 1


def out_width(w):
    return (w.w + 2 * w.padding - w.s) // w.stride + 1


def magnitude(x, weight, bias, *, stride, padding):
    return conv2d.reference(x.abs(), weight.abs(), None if bias is None else bias.abs(), stride=stride, padding=padding)


@op(
    axes={
        "n": Axis(typical=64),
        "c": Axis(min=1, max=2**20, typical=32),
        "h": Axis(min=1, max=2**16, typical=28),
        "w": Axis(min=1, max=2**16, typical=28),
        "k": Axis(min=1, max=2**20, typical=64),
        "r": Axis(min=1, max=7, typical=3),
        "s": Axis(min=1, max=7, typical=3),
    },
    attributes={"stride": Attribute(1, (1, 2, 3)), "padding": Attribute(1, (0, 1, 2))},
    derived={"oh": out_height, "ow": out_width},
    require=lambda w: w.h + 2 * w.padding >= w.r and w.w + 2 * w.padding >= w.s,
    inputs={
        # Narrow enough that a sum over thousands of products stays finite in fp16.
        # No NaN or Inf: PyTorch's bf16 on a CPU with AMX spreads them to other pixels, and whether a NaN weight
        # meets the padding's zeros depends on the algorithm.
        "x": Tensor("n", "c", "h", "w", range=(-16, 16), specials=()),
        "weight": Tensor("k", "c", "r", "s", range=(-4, 4), specials=()),
        "bias": Tensor("k", optional=True, range=(-16, 16), specials=()),
    },
    outputs={"out": Tensor("n", "k", "oh", "ow")},
    operations=lambda w: 2 * w.n * w.k * out_height(w) * out_width(w) * w.c * w.r * w.s,
    magnitude=magnitude,
    terms=lambda w: w.c * w.r * w.s,
)
def conv2d(x, weight, bias, *, stride, padding):
    """Σ x[n, c, y·stride + i − padding, x·stride + j − padding] · weight[k, c, i, j] + bias[k]."""
    from torch.nn.functional import conv2d

    if x.device.type == "cpu" and stride > 1 and x.shape[3] + 2 * padding < weight.shape[3] + stride:
        # One wide, oneDNN's result in bf16 is wrong on a processor with AMX (PyTorch 2.13); one high, it is right.
        return conv2d(x.mT, weight.mT, bias, stride=stride, padding=padding).mT
    return conv2d(x, weight, bias, stride=stride, padding=padding)
