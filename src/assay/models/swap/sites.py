"""Which modules compute which op, and with which of their tensors. A class is recognised by its forward: a subclass
with a forward of its own is not assumed to compute the same. A class recognised only by its name is tried out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pkgutil import resolve_name
from typing import Any

import torch
from torch import nn

from assay.catalog import library
from assay.float64 import exactly
from assay.models.swap.wrapping import original_class
from assay.swappable import Bound, Call, Module, Swappable

MODULES: Mapping[type[nn.Module], tuple[Swappable, Module]] = {
    resolve_name(name): (declared, module)
    for declared in library.swappable()
    for name, module in declared.modules.items()
}
FUNCTIONS: Mapping[Any, tuple[Swappable, Callable[..., Bound]]] = {
    resolve_name(name): (declared, bind)
    for declared in library.swappable()
    for name, bind in declared.functions.items()
}
CALLERS: Mapping[type[nn.Module], Swappable] = {
    resolve_name(name): declared for declared in library.swappable() for name in declared.callers
}


Bind = Callable[[Any, torch.Tensor], Bound]


@dataclass(frozen=True)
class Form:
    """A module that computes an op."""

    op: str
    bind: Bind | None = None
    """Maps the module and its input to the op's call; None: only a replacement of the whole module can take it."""
    why: str = ""
    """Why it must be left although it computes the op."""
    opened: bool = False
    """Whether its forward is its own code, whose functional calls are separate sites."""
    own_autocast: bool = False
    """Whether it is a sequence of PyTorch functions, each autocast separately."""


def form_of(module: nn.Module) -> Form | None:
    """Return the module's form, or None if what it computes is not known."""
    kind = original_class(module)
    family = next((f for f in MODULES if issubclass(kind, f)), None)
    if isinstance(module, torch.jit.ScriptModule):
        return None
    if family is None:
        return _lookalike(module, kind)
    declared, how = MODULES[family]
    op = _op(module, declared, how)
    if kind.forward is not family.forward:
        return Form(op, why=f"{kind.__name__} writes its own forward over {family.__name__}'s", opened=True)
    if "forward" in vars(module):
        return Form(op, why="somebody put another forward on this module", opened=True)
    if any(isinstance(p, nn.UninitializedParameter) for p in module.parameters(recurse=False)):
        return Form(op, why="its parameters are made by its first call: run it once before")
    return Form(op, _bind(op, how), how.limit(module))


def _op(module: nn.Module, declared: Swappable, how: Module) -> str:
    return declared.ops[0] if how.op is None else how.op(module)


def _bind(op: str, how: Module) -> Bind | None:
    """Return the bind of a module. If its settings determine the op, check them at every call, as they may change."""
    bind = how.bind
    if bind is None or how.op is None:
        return bind

    def bound(module: Any, x: torch.Tensor) -> Bound:
        call = bind(module, x)
        return call if isinstance(call, str) or call.op == op else f"it computes {call.op} now"

    return bound


CLOSE = {torch.float32: 2e-5, torch.float64: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
"""Tolerance of a trial relative to the largest value; GELU and its tanh form differ by 4.7e-4."""


def _lookalike(module: nn.Module, kind: type[nn.Module]) -> Form | None:
    """Return the form of a class of another package, recognised by name since the package is not imported here."""
    if "forward" in vars(module):
        return None
    name = f"{kind.__module__}.{kind.__name__}"
    for declared in library.swappable():
        for pattern, how in declared.lookalikes.items():
            if fnmatchcase(name, pattern) and (op := _op(module, declared, how)):
                form = Form(op, _bind(op, how), how.limit(module), own_autocast=True)
                return replace(form, opened=True) if form.why else _tried(module, kind, form)
    return None


def _tried(module: nn.Module, kind: type[nn.Module], form: Form) -> Form:
    """Return the form if the class agrees with the op's reference on a few values, since its name proves nothing; else
    a form with the reason why it is left."""
    weight = getattr(module, "weight", None)
    device = weight.device if isinstance(weight, torch.Tensor) else torch.device("cpu")
    if device.type == "meta":
        return Form(form.op, why=f"{kind.__name__} cannot be tried out: its weights are on the device meta")
    cols = weight.numel() if isinstance(weight, torch.Tensor) else 64
    x = torch.linspace(-6, 6, 2 * cols, device=device).sin().mul(4).view(2, cols)
    x[1] *= 1e-3  # small enough for eps to matter
    assert form.bind is not None
    call = form.bind(module, x)
    try:
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            outputs = kind.forward(module, x)
            op = library.ops()[form.op]
            tensors = call.tensors if isinstance(call, Call) else []
            oracle = exactly(op.reference, tensors, dict(zip(op.attributes, call[2], strict=True)))
    except Exception as error:
        return Form(form.op, why=f"{kind.__name__} could not be tried out: {type(error).__name__}", opened=True)
    for got, right in zip(outputs.double(), oracle.view_as(outputs), strict=True):
        if not (got - right).abs().max() <= CLOSE.get(outputs.dtype, 0) * right.abs().max():
            return Form(form.op, why=f"{kind.__name__} computes something else than {form.op}", opened=True)
    return form
