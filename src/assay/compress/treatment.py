"""A model with its layers quantised or pruned, while it is trained or judged.

A weight or bias is computed from the original at every call (torch's parametrisations), so that the gradient reaches
the original: straight through rounding, and only where a mask keeps the weight. A layer's inputs are treated by a hook.
`settle` replaces the originals by the computed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.utils import parametrize

from assay.compress.formats.through import through
from assay.compress.pruning import dropped

if TYPE_CHECKING:
    from torch import Tensor

    from assay.compress.formats import NumberFormat


@dataclass(frozen=True)
class Drop:
    """How activations are dropped."""

    sparsity: float
    method: str
    seed: int = 0


@dataclass(frozen=True)
class Treatment:
    """The treatment of one layer; a part that is None is left alone."""

    weight: NumberFormat | None = None
    bias: NumberFormat | None = None
    input: NumberFormat | None = None
    mask: Tensor | None = None
    """True where a weight is kept."""
    drop: Drop | None = None


class _Rounded(nn.Module):
    def __init__(self, form: NumberFormat) -> None:
        super().__init__()
        self.form = form

    def forward(self, x: Tensor) -> Tensor:
        return through(self.form, x)


class _Masked(nn.Module):
    mask: Tensor

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.mask


def treat(layers: Mapping[str, nn.Module], treatments: Mapping[str, Treatment]) -> None:
    for path, treatment in treatments.items():
        _treat(layers[path], treatment)


def _treat(layer: nn.Module, treatment: Treatment) -> None:
    masked = None if treatment.mask is None else _Masked(treatment.mask)
    rounded = None if treatment.weight is None else _Rounded(treatment.weight)
    # The mask is applied again after rounding, because some formats have no zero.
    for step in (masked, rounded, masked if rounded else None):
        if step is not None:
            parametrize.register_parametrization(layer, "weight", step)
    if treatment.bias is not None and layer.bias is not None:
        parametrize.register_parametrization(layer, "bias", _Rounded(treatment.bias))
    watch_inputs(layer, treatment.input, treatment.drop)


def watch_inputs(layer: nn.Module, form: NumberFormat | None, drop: Drop | None) -> None:
    """Treat the layer's inputs: first drop, then round."""
    if drop is not None:
        generators: dict[str, torch.Generator] = {}

        def thinned(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            rng = generators.setdefault(str(inputs[0].device), torch.Generator(inputs[0].device).manual_seed(drop.seed))
            return dropped(inputs[0], drop.sparsity, drop.method, rng), *inputs[1:]

        layer.register_forward_pre_hook(thinned)
    if form is not None:
        layer.register_forward_pre_hook(lambda module, inputs: (through(form, inputs[0]), *inputs[1:]))


def original(layer: nn.Module, name: str) -> Tensor:
    """Return the tensor that training updates."""
    if parametrize.is_parametrized(layer, name):
        return layer.parametrizations[name].original  # type: ignore[index, union-attr]
    plain: Tensor = getattr(layer, name)
    return plain


def settle(layers: Mapping[str, nn.Module]) -> None:
    """Replace weights and biases by their computed values; inputs are still treated."""
    for layer in layers.values():
        for name in ("weight", "bias"):
            if parametrize.is_parametrized(layer, name):
                parametrize.remove_parametrizations(layer, name, leave_parametrized=True)
