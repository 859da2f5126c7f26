"""Latency of a model with its linear layers packed, timed in turn with the base model, on one item."""

from __future__ import annotations

import copy
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.compress.formats import parse
from assay.compress.formats.integer import Integer
from assay.compress.formats.mx import Mx
from assay.models.packed.format import MxInt8

if TYPE_CHECKING:
    from torch import nn

    from assay.models.subject.entry import Entry

_ROUNDS, _SECONDS = 7, 0.5


@dataclass(frozen=True)
class Latency:
    """Medians over rounds, in seconds per forward pass."""

    packed: float
    before: float


def rule(template: str) -> str:
    """Return the name of the swap rule for packed layers of this format; empty if no kernel computes with it."""
    if any(word in ("F", "e=T") for word in template.split(":")) or not template:
        return ""
    form = parse(template)
    if isinstance(form, Mx):
        return "mx_linear" if form.name == MxInt8.name else form.name
    if isinstance(form, Integer) and form.width in (4, 8) and form.groups.kind != "tensor":
        return f"int{form.width}{form.groups.suffix}"
    return ""


def packable(model: nn.Module) -> bool:
    """Return whether the model has a layer that can be packed."""
    return any(map(packs, model.modules()))


def packs(module: nn.Module) -> bool:
    """Return whether the module is a linear layer: there are no packed kernels for convolutions."""
    from torch import nn

    return type(module) is nn.Linear


def measured(entry: Entry, model: nn.Module, packing: str, device: str) -> Latency:
    """Measure the latency on one item. `model` is the base model: its weights are packed as they are, because the time
    does not depend on them."""
    import torch

    from assay.models import measure
    from assay.models.swap import swap
    from assay.worker.stopwatch import HostClock

    args, named = entry.example(1, device=device)
    plain, other = copy.deepcopy(model), copy.deepcopy(model)
    clock = measure.WaitedClock(each=True) if device == "cuda" else HostClock()
    with torch.inference_mode(), swap(other, {"linear": packing}):
        arms = [
            measure.Arm("before", lambda: plain(*args, **named)),
            measure.Arm("packed", lambda: other(*args, **named)),
        ]
        for arm in arms:
            arm.call()
        turns = measure.in_turn(arms, clock, _ROUNDS, _SECONDS)
    medians = {n: statistics.median(statistics.median(r) for r in rounds) for n, rounds in turns.samples.items()}
    return Latency(medians["packed"], medians["before"])
