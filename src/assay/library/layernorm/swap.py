"""What LayerNorm stands for in a model, over the last dimension or several."""

import math

from assay.swappable import Call, Module, Swappable


def norm(op, x, shape, weights, eps):
    """The call of a norm over the dimensions of `shape`, the last ones of x: together they are one row."""
    shape = tuple(shape)
    if not shape or tuple(x.shape[-len(shape) :]) != shape:
        return f"its input does not end in {shape}"
    if 0 in shape:
        return "its rows are empty"
    if eps is None:
        import torch

        if x.dtype != torch.float32:
            return "eps is left to PyTorch, whose choice for 16-bit formats depends on its version"
        eps = torch.finfo(x.dtype).eps
    return Call(op, (x, *weights), (eps,), math.prod(shape))


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    return norm("layernorm", input, normalized_shape, (weight, bias), eps)


declared = Swappable(
    ops=("layernorm",),
    modules={
        "torch.nn.LayerNorm": Module(
            lambda module, x: layer_norm(x, module.normalized_shape, module.weight, module.bias, module.eps)
        )
    },
    functions={"torch.nn.functional.layer_norm": layer_norm, "torch.layer_norm": layer_norm},
)
