"""GELU of LayerNorm, as it stands at the head of many an MLP, in one pass; and its backward pass."""

from assay import NAN, Attribute, Axis, Tensor, op
from assay.library.gradient import gradients

AXES = {"rows": Axis(typical=16384), "cols": Axis(min=1, typical=1024)}


def rstd_of(x, eps):
    return ((x - x.mean(1, keepdim=True)).square().mean(1) + eps).rsqrt()


def normalised(x, eps):
    """The normalised rows, and the scale of their natural rounding: the mean's last bit shifts a row."""
    rstd = rstd_of(x, eps)[:, None]
    return (x - x.mean(1, keepdim=True)) * rstd, (x.abs() + x.abs().mean(1, keepdim=True)) * rstd


def affine(value, weight, bias):
    value = value if weight is None else value * weight
    return value if bias is None else value + bias


def forward_magnitude(x, weight, bias, *, eps):
    """That of the LayerNorm, for GELU's slope is hardly more than 1."""
    _, rough = normalised(x, eps)
    return affine(rough, None if weight is None else weight.abs(), None if bias is None else bias.abs())


@op(
    axes=AXES,
    inputs={
        "x": Tensor("rows", "cols", strided=True),
        # GELU's formulas disagree at infinity.
        "weight": Tensor("cols", optional=True, range=(-100, 100), specials=(NAN,)),
        "bias": Tensor("cols", optional=True, range=(-100, 100), specials=(NAN,)),
    },
    attributes={"eps": Attribute(1e-5, (1e-5, 1e-6, 1e-12))},
    outputs={"out": Tensor("rows", "cols")},
    independent="rows",
    operations=lambda w: 16 * w.rows * w.cols,
    magnitude=forward_magnitude,
    roundings=11,  # layernorm's five and gelu's six
    terms=lambda w: w.cols,
)
def ln_gelu(x, weight, bias, *, eps):
    """gelu(layernorm(x)), with the error function."""
    from torch.nn.functional import gelu, layer_norm

    return gelu(layer_norm(x, x.shape[1:], weight, bias, eps))


def backward_magnitude(dy, x, weight, bias, mean, rstd, *, eps):
    """Every term at the size it has before others cancel it; rounding of z moves GELU's slope."""
    import torch

    normal, rough = normalised(x, eps)
    z = affine(normal, weight, bias)
    z_rough = affine(rough, None if weight is None else weight.abs(), None if bias is None else bias.abs())
    bend = (torch.exp(-0.5 * z * z) * 0.3989422804014327 * (2 - z * z)).abs()
    dz = dy.abs() * (1 + bend * z_rough)
    g = dz if weight is None else dz * weight.abs()
    along = (g * (normal.abs() + rough)).mean(1, keepdim=True) * normal.abs()
    across = (g * normal.abs()).mean(1, keepdim=True) * rough
    out = (g + g.mean(1, keepdim=True) + along + across) * rstd[:, None]
    return out, (dz * (normal.abs() + rough)).sum(0), dz.sum(0)


@op(
    axes=AXES,
    inputs={
        # With an infinite gradient or weight the terms of dx cancel differently in every formula: only NaN.
        "dy": Tensor("rows", "cols", range=(-10, 10), specials=(NAN,)),
        "x": Tensor("rows", "cols"),
        "weight": Tensor("cols", optional=True, range=(-10, 10), specials=(NAN,)),
        "bias": Tensor("cols", optional=True, range=(-10, 10), specials=(NAN,)),
        "mean": Tensor("rows", dtype="fp32", given=lambda x: x.mean(1)),
        "rstd": Tensor("rows", dtype="fp32", given=rstd_of),
    },
    attributes={"eps": Attribute(1e-5, (1e-5, 1e-6))},
    outputs={
        "out": Tensor("rows", "cols"),
        "dweight": Tensor("cols", optional=True),
        "dbias": Tensor("cols", optional=True),
    },
    operations=lambda w: 32 * w.rows * w.cols,
    magnitude=backward_magnitude,
    roundings=8,  # less: the errors of the two do not add up
    terms=lambda w: {"out": w.cols, "dweight": w.rows, "dbias": w.rows},
)
def ln_gelu_backward(dy, x, weight, bias, mean, rstd, *, eps):
    """The gradient of ln_gelu with respect to x, weight and bias."""
    import torch

    wide = torch.promote_types(x.dtype, torch.float32)  # PyTorch on the CPU would add up 16-bit gradients in 16 bits
    weight = x.new_ones(x.shape[1]) if weight is None else weight
    bias = torch.zeros_like(weight) if bias is None else bias
    inputs = (x.to(wide), weight.to(wide), bias.to(wide))
    found = gradients(lambda x, weight, bias: ln_gelu.reference(x, weight, bias, eps=eps), inputs, dy.to(wide))
    return tuple(g.to(x.dtype) for g in found)
