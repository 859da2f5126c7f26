"""LayerNorm: each row shifted to mean 0, scaled to variance 1, then weight and bias; and its backward."""

from assay import NAN, Attribute, Axis, Tensor, op
from assay.library.gradient import gradients

AXES = {"rows": Axis(typical=16384), "cols": Axis(min=1, typical=1024)}


def rstd_of(x, eps):
    return ((x - x.mean(1, keepdim=True)).square().mean(1) + eps).rsqrt()


def forward_magnitude(x, weight, bias, *, eps):
    """A mean rounded in its last bit shifts the whole row and adds its square to the variance."""
    size, rstd = x.abs().mean(1), rstd_of(x, eps)
    out = (x.abs() + size[:, None]) * rstd[:, None]
    out = out if weight is None else out * weight.abs()
    out = out if bias is None else out + bias.abs()
    return out, size, rstd * (1 + (size * rstd) ** 2 * 2**-24)


@op(
    axes=AXES,
    inputs={
        "x": Tensor("rows", "cols", strided=True),
        # An infinite weight times a normalised x that is 0 or a rounding error: PyTorch's own halves differ.
        "weight": Tensor("cols", optional=True, range=(-100, 100), specials=(NAN,)),
        "bias": Tensor("cols", optional=True, range=(-100, 100)),
    },
    attributes={"eps": Attribute(1e-5, (1e-5, 1e-6, 1e-12))},
    outputs={
        "out": Tensor("rows", "cols"),
        "mean": Tensor("rows", dtype="fp32", optional=True),
        "rstd": Tensor("rows", dtype="fp32", optional=True),
    },
    independent="rows",
    operations=lambda w: 8 * w.rows * w.cols,
    magnitude=forward_magnitude,
    roundings=5,  # the mean, x − mean, half of the variance and a reciprocal root within 2 ulps; scale, weight, bias
    terms=lambda w: w.cols,
)
def layernorm(x, weight, bias, *, eps):
    """(x − mean)·rstd·weight + bias, with rstd = 1/√(variance + eps)."""
    import torch
    from torch.nn.functional import layer_norm

    # PyTorch's own rstd, of a wide x: on the CPU it comes in x's dtype. (Its mean turns an infinite row's into NaN.)
    wide = x if x.dtype == torch.float64 else x.float()
    _, _, rstd = torch.native_layer_norm(wide, x.shape[1:], None, None, eps)
    return layer_norm(x, x.shape[1:], weight, bias, eps), wide.mean(1), rstd.flatten()


def backward_magnitude(dy, x, weight, mean, rstd, *, eps):
    """Every term at the size it has before others cancel it; the normalised x rounds as x and mean do."""
    normal = (x - mean[:, None]) * rstd[:, None]
    rough = (x.abs() + x.abs().mean(1, keepdim=True)) * rstd[:, None]
    g = dy if weight is None else dy * weight
    along = (g.abs() * (normal.abs() + rough)).mean(1, keepdim=True) * normal.abs()
    across = (g * normal).mean(1, keepdim=True).abs() * rough
    out = (g.abs() + g.abs().mean(1, keepdim=True) + along + across) * rstd[:, None]
    return out, (dy.abs() * (normal.abs() + rough)).sum(0), dy.abs().sum(0)


@op(
    axes=AXES,
    inputs={
        # With an infinite gradient or weight the terms of dx cancel differently in every formula: only NaN.
        "dy": Tensor("rows", "cols", range=(-10, 10), specials=(NAN,)),
        "x": Tensor("rows", "cols"),
        "weight": Tensor("cols", optional=True, range=(-10, 10), specials=(NAN,)),
        "mean": Tensor("rows", dtype="fp32", given=lambda x: x.mean(1)),
        "rstd": Tensor("rows", dtype="fp32", given=rstd_of),
    },
    attributes={"eps": Attribute(1e-5, (1e-5, 1e-6))},
    outputs={
        "out": Tensor("rows", "cols"),
        "dweight": Tensor("cols", optional=True),
        "dbias": Tensor("cols", optional=True),
    },
    operations=lambda w: 16 * w.rows * w.cols,
    magnitude=backward_magnitude,
    roundings=5,  # dy·weight, two sums of products, two differences, the product with rstd; as many roundings of x
    terms=lambda w: {"out": w.cols, "dweight": w.rows, "dbias": w.rows},
)
def layernorm_backward(dy, x, weight, mean, rstd, *, eps):
    """The gradient of layernorm with respect to x, weight and bias."""
    import torch
    from torch.nn.functional import layer_norm

    wide = torch.promote_types(x.dtype, torch.float32)  # PyTorch on the CPU would add up 16-bit gradients in 16 bits
    weight = x.new_ones(x.shape[1]) if weight is None else weight
    inputs = (x.to(wide), weight.to(wide), torch.zeros_like(weight, dtype=wide))
    found = gradients(lambda x, weight, bias: layer_norm(x, x.shape[1:], weight, bias, eps), inputs, dy.to(wide))
    return tuple(g.to(x.dtype) for g in found)
