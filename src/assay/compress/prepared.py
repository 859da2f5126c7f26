"""Turns a point of a curve into the treatment of each layer of a trained model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from assay.compress import pruning, templates
from assay.compress.layers import layers
from assay.compress.planning import CONTROL, Point
from assay.compress.treatment import Drop, Treatment

if TYPE_CHECKING:
    from torch import Tensor, nn

    from assay.compress.task import Task

_CALIBRATED = 256
"""Items of the training split whose activations determine the formats of inputs."""
_VALUES = 1 << 16
"""Maximum number of values sampled from a layer's inputs."""


def treatments(model: nn.Module, point: Point, task: Task, seed: int) -> dict[str, Treatment]:
    """Return the treatment of each layer by path. Must be called before the model is treated."""
    found = layers(model)
    if point.method == CONTROL:
        return {}
    if point.study == "quantize":
        return _quantized(found, model, point, task)
    masks: Mapping[str, Tensor] = {}
    if "weights" in point.of and point.sparsity is not None:
        weights = {path: layer.weight for path, layer in found.items()}
        masks = pruning.masks(weights, point.sparsity, point.method, point.scope, seed)  # type: ignore[arg-type]
    drop = Drop(point.sparsity or 0.0, point.method, seed) if "activations" in point.of else None
    return {path: Treatment(mask=masks.get(path), drop=drop) for path in found}


def _quantized(found: Mapping[str, nn.Module], model: nn.Module, point: Point, task: Task) -> dict[str, Treatment]:
    inputs = inputs_of(found, model, task) if "inputs" in point.of else {}
    made = {}
    for path, layer in found.items():
        bias: Any = getattr(layer, "bias", None)
        made[path] = Treatment(
            weight=templates.fitted(point.format, layer.weight) if "weights" in point.of else None,  # type: ignore[arg-type]
            bias=templates.fitted(point.format, bias) if "biases" in point.of and bias is not None else None,
            input=templates.fitted(templates.of_inputs(point.format), inputs[path]) if path in inputs else None,
        )
    return made


def inputs_of(found: Mapping[str, nn.Module], model: nn.Module, task: Task) -> dict[str, Tensor]:
    """Return a sample of each layer's input values while the model runs on training data."""
    import torch

    seen: dict[str, Tensor] = {}

    def keep(path: str, values: Tensor) -> None:
        flat = values.detach().float().flatten()
        seen[path] = flat[:: -(-len(flat) // _VALUES)]

    hooks = [
        layer.register_forward_pre_hook(lambda module, args, path=path: keep(path, args[0]))
        for path, layer in found.items()
    ]
    try:
        with torch.no_grad():
            few = min(_CALIBRATED, len(task.train))
            model(*task.train.inputs(slice(0, few), torch.float32))
    finally:
        for hook in hooks:
            hook.remove()
    return seen
