"""Functional calls (F.gelu, x.softmax(-1)) inside a module's forward: a TorchFunctionMode sees them and knows the
innermost module that made them. The mode is entered by the outermost watched module and left with it, so nothing
outside the model is seen; one for all, because every mode on the stack costs time in every PyTorch call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from assay.models.swap import sites
from assay.models.swap.call import Bound, Call
from assay.models.swap.report import Entry
from assay.models.swap.substitute import Substitute, note_call


def _gelu(input: Any, approximate: str = "none") -> Bound:
    return Call("gelu_tanh" if approximate == "tanh" else "gelu", (input,))


def _silu(input: Any, inplace: bool = False) -> Bound:
    return "it works in place" if inplace else Call("silu", (input,))


def _layer_norm(
    input: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Bound:
    return sites.norm("layernorm", input, normalized_shape, (weight, bias), eps)


def _rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Bound:
    return sites.norm("rmsnorm", input, normalized_shape, (weight,), eps)


def _softmax_function(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Bound:
    return sites.softmax(input, dim, dtype)


def _softmax(input: Any, dim: Any, dtype: Any = None) -> Bound:
    return sites.softmax(input, dim, dtype)


def _conv2d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Bound:
    return sites.conv2d(input, weight, bias, stride, padding, dilation, groups)


FUNCTIONS: Mapping[Any, tuple[str, Callable[..., Bound]]] = {
    F.gelu: ("gelu", _gelu),
    F.silu: ("silu", _silu),
    F.layer_norm: ("layernorm", _layer_norm),
    torch.layer_norm: ("layernorm", _layer_norm),
    F.rms_norm: ("rmsnorm", _rms_norm),
    torch.rms_norm: ("rmsnorm", _rms_norm),
    F.softmax: ("softmax", _softmax_function),
    torch.softmax: ("softmax", _softmax),
    torch.special.softmax: ("softmax", _softmax),
    torch.Tensor.softmax: ("softmax", _softmax),
    F.conv2d: ("conv2d", _conv2d),
}
"""Function → the op it computes unless its arguments say otherwise, and how they become its call."""
OPS = ("gelu", "gelu_tanh", "silu", "layernorm", "rmsnorm", "softmax", "conv2d")


class Watched:
    """A module whose functional calls are seen: by op, the kernel that takes them, or why they are left."""

    def __init__(self) -> None:
        self.substitutes: dict[str, Substitute] = {}
        self.left: dict[str, Entry] = {}

    def call(self, bind: Callable[..., Bound], op: str, function: Any, args: Any, kwargs: Any) -> Any:
        try:
            bound = bind(*args, **kwargs)
        except (TypeError, AttributeError):  # `out=`, or a mistake of the caller's that PyTorch shall explain
            bound = "called with other arguments"
        if isinstance(bound, str):
            if op in self.substitutes:
                self.substitutes[op].refuse(bound)
            return function(*args, **kwargs)
        if bound.op in self.substitutes:
            result = self.substitutes[bound.op].attempt(bound)
            return function(*args, **kwargs) if result is None else result
        if bound.op in self.left:
            note_call(self.left[bound.op].tally)
        return function(*args, **kwargs)


class _Here(threading.local):
    """Which module runs in this thread."""

    watched: Watched | None = None
    inside = False


class Watch(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.here = _Here()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        watched = self.here.watched
        if watched is None or func not in FUNCTIONS:
            return func(*args, **kwargs)
        op, bind = FUNCTIONS[func]
        return watched.call(bind, op, func, args, kwargs)


def watching(forward: Callable[..., Any], watch: Watch, watched: Watched | None) -> Callable[..., Any]:
    """A forward during which functional calls belong to this module (to none, with None: a known module's own)."""

    def watched_forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        here = watch.here
        outer, inside = here.watched, here.inside
        here.watched = watched
        try:
            if inside or watched is None:
                return forward(self, *args, **kwargs)
            here.inside = True
            with watch:
                return forward(self, *args, **kwargs)
        finally:
            here.watched, here.inside = outer, inside

    return watched_forward
