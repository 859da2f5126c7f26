"""A compressed model in a file: codes instead of weights, a bitmap of the weights kept, all other tensors unchanged.

The file names the model and the treatment of each layer, so that `load` needs only the file. Sizes and scores in
records are those of the model that `load` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from assay.compress.formats import parse
from assay.compress.formats.coded import Coded
from assay.compress.formats.packing import pack, unpack
from assay.compress.layers import layers
from assay.compress.treatment import Drop, Treatment, original, watch_inputs
from assay.errors import UsageError
from assay.models.subject import checkpoint
from assay.models.subject.checkpoint import Checkpoint
from assay.models.subject.registry import declared, entry

if TYPE_CHECKING:
    from torch import Tensor, nn

COMPRESSED = "compressed"
"""Key, among the checkpoint's facts, of the description of the compressed model."""
_PARTS = ("weight", "bias")


@dataclass(frozen=True)
class Written:
    bytes: int
    """Size of the file."""
    bits: dict[str, int]
    """Bits of its tensors, by kind."""


def save(
    model: nn.Module,
    path: Path,
    name: str,
    treatments: Mapping[str, Treatment],
    options: Mapping[str, str] | None = None,
) -> Written:
    """Write the treated model. `name`: as in the registry. `options`: those with which it was built."""
    found = layers(model)
    tensors: dict[str, Tensor] = {}
    kinds: dict[str, str] = {}
    done: dict[str, dict[str, Any]] = {}
    own = {id(original(found[path_], part)) for path_ in treatments for part in _PARTS if _has(found[path_], part)}
    for path_, treatment in treatments.items():
        done[path_] = {"input": _name(treatment.input), "drop": asdict(treatment.drop) if treatment.drop else None}
        for part in _PARTS:
            if not _has(found[path_], part):
                continue
            form = treatment.weight if part == "weight" else treatment.bias
            mask = treatment.mask if part == "weight" else None
            parts, how = _encoded(original(found[path_], part).detach(), form, mask)
            done[path_][part] = how
            for kind, tensor in parts.items():
                tensors[f"{path_}.{part}.{kind}"], kinds[f"{path_}.{part}.{kind}"] = tensor, kind
    for key, tensor in _others(model, own).items():
        tensors[key], kinds[key] = tensor, "left alone"
    about = {"model": name, "options": dict(options or {}), "layers": done}
    checkpoint.write(path, Checkpoint(tensors, {COMPRESSED: about}))
    bits: dict[str, int] = {}
    for key, tensor in tensors.items():
        bits[kinds[key]] = bits.get(kinds[key], 0) + 8 * tensor.nbytes
    return Written(path.stat().st_size, bits)


def load(path: str | Path) -> nn.Module:
    """Return the compressed model in fp32 on the CPU, in eval mode. Its weights are the decoded values, and its layers'
    inputs are treated as before."""
    kept = checkpoint.read(Path(path))
    about = kept.facts.get(COMPRESSED)
    if not isinstance(about, Mapping):
        raise UsageError(f"{path} holds no compressed model", fix="name a file that `assay compress … --save` wrote")
    model = declared(entry(about["model"])).build(**about.get("options", {}))
    found, state = layers(model), dict(kept.tensors)
    for layer, how in about["layers"].items():
        if layer not in found:
            raise UsageError(f"{path} has a layer {layer}, {about['model']} has none", fix="compress it again")
        for part in _PARTS:
            if part in how:
                prefix = f"{layer}.{part}."
                parts = {k.removeprefix(prefix): state.pop(k) for k in list(state) if k.startswith(prefix)}
                state[f"{layer}.{part}"] = _decoded(parts, how[part])
    wanted = {n: t.shape for n, t in model.state_dict().items()}
    checkpoint.compare(Path(path), state, wanted, fix="compress it again: the model has changed since")
    model.load_state_dict(state)
    for layer, how in about["layers"].items():
        form, drop = how["input"] and parse(how["input"]), how["drop"]
        watch_inputs(found[layer], form or None, Drop(**drop) if drop else None)
    return model.eval()


def _has(layer: nn.Module, part: str) -> bool:
    return getattr(layer, part, None) is not None


def _name(form: Any) -> str:
    return form.name if form is not None else ""


def _others(model: nn.Module, own: set[int]) -> dict[str, Tensor]:
    """Return all tensors except the weights and biases of treated layers, named as in the plain model."""
    named = [*model.named_parameters(), *model.named_buffers()]
    kept = set(model.state_dict())
    return {n: t.detach() for n, t in named if id(t) not in own and n in kept and ".parametrizations." not in f".{n}"}


def _encoded(x: Tensor, form: Any, mask: Tensor | None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors that encode x in the file, and how to read them. With a mask only the kept values are stored,
    unless elements share a scale or an exponent."""
    how: dict[str, Any] = {"shape": list(x.shape), "format": _name(form), "sparse": False}
    parts: dict[str, Tensor] = {}
    stored = x.float().cpu()
    if mask is not None:
        flat = mask.cpu().flatten()
        parts["mask"] = pack(flat.to(torch.int64), 1)
        stored = stored * mask.cpu()
        if form is None or not form.layout.shared:
            how["sparse"] = True
            stored = stored.flatten()[flat]
    if form is None:
        return parts | {"values": stored}, how
    coded = form.encode(stored)
    return parts | coded.tensors, how


def _decoded(parts: dict[str, Tensor], how: Mapping[str, Any]) -> Tensor:
    shape = tuple(how["shape"])
    count = torch.Size(shape).numel()
    flat = unpack(parts.pop("mask"), 1, count).bool() if "mask" in parts else None
    held = (int(flat.sum()),) if how["sparse"] and flat is not None else shape
    if how["format"]:
        elements = parts.pop("elements")
        values = parse(how["format"]).decode(Coded(elements, parts, held))
    else:
        values = parts["values"]
    if flat is None:
        return values.view(shape)
    if how["sparse"]:
        whole = torch.zeros(count)
        whole[flat] = values
        return whole.view(shape)
    return values.view(shape) * flat.view(shape)
