"""Saves a model with packed weights to a file that keeps them packed, and loads the file into a fresh model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from assay.errors import UsageError
from assay.models.operators.choice import Named, choose
from assay.models.packed.format import Packed, find
from assay.models.packed.linear import PackedLinear
from assay.models.subject import checkpoint
from assay.models.subject.checkpoint import PACKED, Checkpoint

_SAME = "same"
Facts = Mapping[str, Any]


def save(model: nn.Module, path: str | Path) -> str:
    """Save the model's state with its weights packed; tensors shared by modules are stored once. Return the SHA-256 of
    the content."""
    layers = {
        name: {"format": m.format.name, "shape": [m.out_features, m.in_features]}
        for name, m in model.named_modules(remove_duplicate=False)
        if isinstance(m, PackedLinear)
    }
    if not layers:
        raise UsageError(
            "nothing in this model is packed", fix='swap first: assay.swap(model, {"linear": "mx_linear"})'
        )
    first: dict[Any, str] = {}
    tensors: dict[str, torch.Tensor] = {}
    same: dict[str, str] = {}
    for name, tensor in model.state_dict().items():
        if not isinstance(tensor, torch.Tensor):
            raise UsageError(f"{name} is a {type(tensor).__name__}, not a tensor", fix="such state cannot be kept")
        key = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype) if tensor.numel() else name
        if first.setdefault(key, name) == name:
            tensors[name] = tensor
        else:
            same[name] = first[key]
    return checkpoint.write(Path(path), Checkpoint(tensors, {PACKED: layers, _SAME: same}))


def load(model: nn.Module, path: str | Path, kernel: Named | None = "") -> list[str]:
    """Load the file's state into the model and return the paths of packed layers. Linear layers that are packed in the
    file are replaced by packed ones, which multiply by `kernel`: empty: the best one available here; None: no kernel.
    The model's own state is lost: nothing is spilled, and there is nothing to undo. On an error nothing is changed."""
    path = Path(path)
    kept = checkpoint.read(path)
    if PACKED not in kept.facts:
        fix = "load it with assay.models.subject.checkpoint.load_into"
        raise UsageError(f"{path} holds no packed weights", fix=fix)
    tensors = dict(kept.tensors)
    tensors |= {name: tensors[other] for name, other in kept.facts[_SAME].items()}
    layers: Facts = kept.facts[PACKED]
    built = _built(model, path, layers, tensors, kernel)
    _verify(model, path, layers, tensors)
    for module, packed in built.items():
        for parent in list(model.modules()):
            for name, child in parent._modules.items():
                if child is module:
                    parent._modules[name] = packed
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            tensor.copy_(tensors[name])
    return list(layers)


def _built(
    model: nn.Module, path: Path, layers: Facts, tensors: Mapping[str, torch.Tensor], kernel: Named | None
) -> dict[nn.Module, PackedLinear]:
    """Return a packed layer for each linear layer of the model that is to be packed and is not yet."""
    placed: dict[tuple[int, torch.device], torch.Tensor] = {}

    def on(device: torch.device, tensor: torch.Tensor) -> torch.Tensor:
        return placed.setdefault((id(tensor), device), tensor.to(device))  # tensors shared in the file stay shared

    modules, made = dict(model.named_modules(remove_duplicate=False)), dict[nn.Module, PackedLinear]()
    for name, layer in layers.items():
        module, (rows, cols), kept = modules.get(name), layer["shape"], layer["format"]
        if type(module) is not nn.Linear and not isinstance(module, PackedLinear):
            raise UsageError(f"{path} has a packed layer {name}, the model has none", fix="build the same model")
        if (module.out_features, module.in_features) != (rows, cols):
            shape = f"{module.out_features}×{module.in_features}"
            raise UsageError(f"{path}: {name} is {rows}×{cols}, the model's is {shape}", fix="build the same model")
        if isinstance(module, PackedLinear):
            if module.format.name != kept:
                formats = f"{kept}, the model's is {module.format.name}"
                raise UsageError(f"{path}: {name} is {formats}", fix="undo the swap first")
            continue
        weight = module.weight
        op = find(kept).op
        chosen = choose(kernel or op, op, weight.device.type, str(kernel)) if op and kernel is not None else None
        kind = find(kept, chosen[0].address.backend if chosen else "torch")
        packed = Packed(*(on(weight.device, tensors[f"{name}.{part}"]) for part in Packed._fields))
        made[module] = PackedLinear(packed, (rows, cols), module.bias, weight.dtype, kind).standing_for(module)
        if chosen:
            made[module].with_kernel(*chosen)
    return made


def _verify(model: nn.Module, path: Path, layers: Facts, tensors: Mapping[str, torch.Tensor]) -> None:
    """Compare names and shapes before the first tensor is copied."""
    wanted = {name: t.shape for name, t in model.state_dict().items()}
    for name, layer in layers.items():
        wanted.pop(f"{name}.weight", None)
        extents = find(layer["format"]).extents(*layer["shape"])
        wanted |= {f"{name}.{part}": torch.Size(e) for part, e in zip(Packed._fields, extents, strict=True)}
    checkpoint.compare(path, tensors, wanted, fix="build the same model")
    if any(t.is_meta for t in model.state_dict().values()):
        raise UsageError("the model is on the device meta: there is no memory to load into", fix="build it on a device")
