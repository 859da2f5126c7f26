"""Which modules compute which op, and with which of their tensors. A class is known by its forward: a subclass that
writes its own is not assumed to compute the same. Hugging Face's classes are known by name and tried out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from assay.catalog import library
from assay.models.swap.call import Bound, Call
from assay.models.swap.wrapping import original_class

Bind = Callable[[Any, torch.Tensor], Bound]


@dataclass(frozen=True)
class Form:
    """A module that computes an op."""

    op: str
    bind: Bind | None = None
    """From the module and its input to the op's call; None: only a replacement of the whole module can take it."""
    why: str = ""
    """Why it must be left although it computes the op."""
    opened: bool = False
    """Its forward is code of its own, whose functional calls are sites of their own."""
    own_autocast: bool = False
    """Several PyTorch functions in a row, each autocast by itself."""


def form_of(module: nn.Module) -> Form | None:
    """What the module computes, if it is known."""
    kind = original_class(module)
    family = next((f for f in _FAMILIES if issubclass(kind, f)), None)
    if isinstance(module, torch.jit.ScriptModule):
        return None
    if family is None:
        return _by_name(module, kind)
    op, bind, limit = _FAMILIES[family](module)
    if kind.forward is not family.forward:
        return Form(op, why=f"{kind.__name__} writes its own forward over {family.__name__}'s", opened=True)
    if "forward" in vars(module):
        return Form(op, why="somebody put another forward on this module", opened=True)
    if any(isinstance(p, nn.UninitializedParameter) for p in module.parameters(recurse=False)):
        return Form(op, why="its parameters are made by its first call: run it once before")
    return Form(op, bind, limit(module))


Family = tuple[str, Bind | None, Callable[[Any], str]]
"""The op, how the module's input and tensors become its call, and what of it lies outside the op already."""


def _unlimited(module: Any) -> str:
    return ""


def _gelu(module: Any) -> Family:
    approximate = module.approximate
    op = "gelu_tanh" if approximate == "tanh" else "gelu"
    return op, lambda m, x: Call(op, (x,)) if m.approximate == approximate else "its approximation changed", _unlimited


def _silu(module: Any) -> Family:
    return "silu", lambda m, x: Call("silu", (x,)), lambda m: "it works in place" if m.inplace else ""


def _layernorm(module: Any) -> Family:
    return "layernorm", lambda m, x: norm("layernorm", x, m.normalized_shape, (m.weight, m.bias), m.eps), _unlimited


def _rmsnorm(module: Any) -> Family:
    return "rmsnorm", lambda m, x: norm("rmsnorm", x, m.normalized_shape, (m.weight,), m.eps), _unlimited


def _softmax(module: Any) -> Family:
    return "softmax", lambda m, x: softmax(x, m.dim), _unlimited


def _conv2d(module: Any) -> Family:
    def bind(m: Any, x: torch.Tensor | None) -> Bound:
        if m.padding_mode != "zeros":
            return f"padding with {m.padding_mode}"
        return conv2d(x, m.weight, m.bias, m.stride, m.padding, m.dilation, m.groups)

    def limit(m: Any) -> str:
        tried = bind(m, None)  # all but the image is known already
        return tried if isinstance(tried, str) else ""

    return "conv2d", bind, limit


def _linear(module: Any) -> Family:
    own = isinstance(module, nn.modules.linear.NonDynamicallyQuantizableLinear)
    return "linear", None, lambda m: "nn.MultiheadAttention reads its weight without calling it" if own else ""


_FAMILIES: dict[type[nn.Module], Callable[[Any], Family]] = {
    nn.GELU: _gelu,
    nn.SiLU: _silu,
    nn.LayerNorm: _layernorm,
    nn.RMSNorm: _rmsnorm,
    nn.Softmax: _softmax,
    nn.Conv2d: _conv2d,
    nn.Linear: _linear,
}


# What modules and functions share: from PyTorch's arguments to a call of the op.


def norm(op: str, x: torch.Tensor, shape: Any, weights: tuple[torch.Tensor | None, ...], eps: float | None) -> Bound:
    shape = tuple(shape)
    if not shape or tuple(x.shape[-len(shape) :]) != shape:
        return f"its input does not end in {shape}"
    if 0 in shape:
        return "its rows are empty"
    if eps is None:
        if x.dtype != torch.float32:
            return "eps is left to PyTorch, whose choice for 16-bit formats depends on its version"
        eps = torch.finfo(x.dtype).eps
    return Call(op, (x, *weights), (eps,), math.prod(shape))


def softmax(x: torch.Tensor, dim: Any, dtype: torch.dtype | None = None) -> Bound:
    if not isinstance(dim, int) or x.dim() == 0 or dim not in (-1, x.dim() - 1):
        return f"over dimension {dim} of {x.dim()}, not the last"
    if x.shape[-1] == 0:
        return "its rows are empty"
    return Call("softmax", (x if dtype is None else x.to(dtype),), (), x.shape[-1])


def conv2d(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Bound:
    if groups != 1:
        return f"{groups} groups"
    if _one(dilation) != 1:
        return f"dilation {dilation}"
    if padding == "valid":
        padding = 0
    if padding == "same":
        height, width = weight.shape[-2:]
        if height != width or height % 2 == 0:
            return f"padding 'same' of a {height}×{width} kernel"
        padding = height // 2
    if _one(stride) is None or _one(padding) is None:
        return f"stride {stride} or padding {padding} differs between height and width"
    if most := next((f"kernel {tuple(weight.shape[-2:])}" for k in weight.shape[-2:] if k > _LARGEST_KERNEL), ""):
        return f"{most} is larger than {_LARGEST_KERNEL}"
    return Call("conv2d", (x, weight, bias), (_one(stride), _one(padding)))


_LARGEST_KERNEL = library.ops()["conv2d"].axes["r"].max


def _one(value: Any) -> Any:
    """The value, if it is the same both ways."""
    values = tuple(value) if isinstance(value, tuple | list) else (value,)
    return values[0] if all(v == values[0] for v in values) else None


# Classes of other packages, which are not imported here.

_NAMES = {
    "GELUActivation": "gelu",
    "NewGELUActivation": "gelu_tanh",
    "FastGELUActivation": "gelu_tanh",
    "AccurateGELUActivation": "gelu_tanh",
    "GELUTanh": "gelu_tanh",
    "PytorchGELUTanh": "gelu_tanh",
    "SiLUActivation": "silu",
}
_CLOSE = {torch.float32: 2e-5, torch.float64: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
"""A trial's tolerance, of the largest value; GELU and its tanh form differ by 4.7e-4."""


def _by_name(module: nn.Module, kind: type[nn.Module]) -> Form | None:
    if "forward" in vars(module):
        return None
    if op := _NAMES.get(kind.__name__):
        return _tried(module, kind, Form(op, lambda m, x: Call(op, (x,)), own_autocast=True))
    weight, eps = getattr(module, "weight", None), _epsilon(module)
    if kind.__name__ == "Conv1D" and kind.__module__.startswith("transformers."):
        return Form("linear", why="Conv1D holds its weight transposed", opened=True)
    if kind.__name__.endswith(("RMSNorm", "T5LayerNorm")) and isinstance(weight, torch.Tensor) and eps is not None:

        def bind(m: Any, x: torch.Tensor) -> Bound:
            return norm("rmsnorm", x, m.weight.shape, (m.weight,), _epsilon(m))

        return _tried(module, kind, Form("rmsnorm", bind, own_autocast=True))
    return None


def _epsilon(module: Any) -> float | None:
    value = getattr(module, "variance_epsilon", getattr(module, "eps", None))
    return float(value) if isinstance(value, float | int) else None


def _tried(module: nn.Module, kind: type[nn.Module], form: Form) -> Form:
    """A name proves nothing: the class must agree with the op's reference on a few values."""
    weight = getattr(module, "weight", None)
    device = weight.device if isinstance(weight, torch.Tensor) else torch.device("cpu")
    if device.type == "meta":
        return Form(form.op, why=f"{kind.__name__} cannot be tried out: its weights are on the device meta")
    cols = weight.numel() if isinstance(weight, torch.Tensor) else 64
    x = torch.linspace(-6, 6, 2 * cols, device=device).sin().mul(4).view(2, cols)
    x[1] *= 1e-3  # small enough for eps to be seen
    assert form.bind is not None
    call = form.bind(module, x)
    try:
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            mine = kind.forward(module, x)
            names = library.ops()[form.op].attributes
            exact = [t if t is None else t.double() for t in call.tensors] if isinstance(call, Call) else []
            oracle = library.ops()[form.op].reference(*exact, **dict(zip(names, call[2], strict=True)))
    except Exception as error:
        return Form(form.op, why=f"{kind.__name__} could not be tried out: {type(error).__name__}", opened=True)
    for got, right in zip(mine.double(), oracle.view_as(mine), strict=True):
        if not (got - right).abs().max() <= _CLOSE.get(mine.dtype, 0) * right.abs().max():
            return Form(form.op, why=f"{kind.__name__} computes something else than {form.op}", opened=True)
    return form
