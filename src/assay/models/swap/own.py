"""A user's own op in a model. A module that a rule names by path is taken to compute it if both agree on a trial.

The op's first input is the module's argument. Its other inputs and its attributes are the module's attributes of the
same names: `weight`, `bias`, `eps`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from assay.catalog import library
from assay.float64 import exactly
from assay.models.swap.rules import OPS, Rule
from assay.models.swap.sites import CLOSE, Form
from assay.models.swap.wrapping import original_class
from assay.op import Op
from assay.swappable import Bound, Call

_FEW = 6
"""Size of an axis in the trial if the module's own tensors do not determine it."""


def own_op(rule: Rule) -> Op | None:
    """Return the op if the rule names modules by path and a kernel of a user's own op; else None."""
    if rule.path is None or rule.op is not None or rule.choice is None:
        return None
    op = rule.choice[1]
    return None if library.ROOT in Path(op.source).parents or op.name in OPS else op


def form_of_own(module: nn.Module, op: Op) -> Form:
    """Return the module's form as a site of the op, or with the reason why it must be left."""
    kind = original_class(module)

    def bind(module: Any, x: torch.Tensor) -> Bound:
        return _call(op, module, x)

    form = Form(op.name, bind, own_autocast=True)
    if why := _disagreement(module, kind, op):
        return Form(op.name, why=why, opened=True)
    return form


def _call(op: Op, module: Any, x: torch.Tensor) -> Bound:
    first, *rest = op.inputs
    rank = len(op.inputs[first].shape)
    if x.dim() != rank and not (_keeps_shape(op) and op.independent == op.inputs[first].shape[0]):
        more = f"; with independent={op.inputs[first].shape[0]!r} it takes more" if _keeps_shape(op) else ""
        return f"its input has {x.dim()} dimensions, {op.name} takes {rank}{more}"
    tensors: list[torch.Tensor | None] = [x]
    for name in rest:
        held = getattr(module, name, None)
        if not isinstance(held, torch.Tensor) and not op.inputs[name].optional:
            return f"it holds no tensor called {name}, which {op.name} takes"
        tensors.append(held if isinstance(held, torch.Tensor) else None)
    attributes = []
    for name, attribute in op.attributes.items():
        value = getattr(module, name, None)
        attributes.append(value if isinstance(value, int | float) else attribute.default)
    return Call(op.name, tuple(tensors), tuple(attributes), x.shape[-1] if x.dim() else 1)


def _keeps_shape(op: Op) -> bool:
    """Return whether the op has one output, shaped like its first input. If it is also independent along the first
    axis, several leading dimensions can be merged into one."""
    first, outputs = next(iter(op.inputs.values())), list(op.outputs.values())
    return len(outputs) == 1 and bool(first.shape) and outputs[0].shape == first.shape


def _disagreement(module: nn.Module, kind: type[nn.Module], op: Op) -> str:
    """Return why the module is not taken to compute the op, since a path alone proves nothing; empty if both agree."""
    if isinstance(module, torch.jit.ScriptModule) or "forward" in vars(module):
        return "its forward is not that of its class"
    held = [*module.parameters(), *module.buffers()]
    if any(t.device.type == "meta" for t in held):
        return f"{kind.__name__} cannot be tried out: its weights are on the device meta"
    number = next((t.dtype for t in held if t.is_floating_point()), torch.float32)
    device = held[0].device if held else torch.device("cpu")
    x = _trial(module, op).to(device, number)
    call = _call(op, module, x)
    if isinstance(call, str):
        return call
    try:
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            got = kind.forward(module, x)
            right = exactly(op.reference, call.tensors, dict(zip(op.attributes, call.attributes, strict=True)))
    except Exception as error:
        return f"{kind.__name__} could not be tried out: {type(error).__name__}: {error}".splitlines()[0]
    if not isinstance(got, torch.Tensor) or not isinstance(right, torch.Tensor) or got.shape != right.shape:
        return f"{kind.__name__} computes something else than {op.name}"
    if not (got.double() - right).abs().max() <= CLOSE.get(got.dtype, 0) * right.abs().max():
        return f"{kind.__name__} computes something else than {op.name}"
    return ""


def _trial(module: nn.Module, op: Op) -> torch.Tensor:
    """Return a few values for the op's first input, with sizes taken from the module's own tensors."""
    sizes: dict[str | int, int] = {}
    (_, first), *rest = op.inputs.items()
    for name, declared in rest:
        held = getattr(module, name, None)
        if isinstance(held, torch.Tensor):
            sizes.update(zip(declared.shape, held.shape, strict=False))
    for name, axis in op.axes.items():
        sizes.setdefault(name, max(axis.min, min(axis.max, _FEW)))
    shape = [size if isinstance(size, int) else sizes.get(size, _FEW) for size in first.shape]
    count = int(torch.Size(shape).numel())
    return torch.linspace(-6, 6, count).sin().mul(4).clamp(*first.range).view(shape)
