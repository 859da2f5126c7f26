"""The outputs expected of a model at one batch size, in float64 and from plain PyTorch, on enough inputs to judge by.

Ten logits of one image share their errors: of two correct ways to compute them, one may be off three times as much as
the other. So a small batch is judged on several inputs."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import nn

from assay import float64
from assay.models.packed.compare import compare
from assay.models.studies.agreement import agreement, errors, leaves, share
from assay.models.studies.infer.calls import watched
from assay.models.studies.infer.evidence import ENOUGH
from assay.models.subject.entry import Entry, Inputs
from assay.models.subject.subject import Subject, widened

Forward = Callable[[Inputs], Any]
Outputs = dict[tuple[str, int, tuple[int, ...]], torch.Tensor]
"""Some rows of each output, by path, how often the module had run before, and the output's shape."""
_MOST = 1 << 18
"""Elements kept of one output, since three copies of all outputs of all modules are more than a GPU holds."""


class Truth:
    def __init__(self, subject: Subject, batch: int, least: int = ENOUGH) -> None:
        """`least`: number of elements to judge by; 1: a single input, for when each takes long."""
        count = math.ceil(least / batch)
        more = [
            subject.entry.example(batch, subject.seed + n, device=subject.device, dtype=subject.dtype)
            for n in range(1, count)
        ]
        self.inputs = [subject.inputs(batch), *more]
        self.elements = batch * count
        wide = copy.deepcopy(subject.model).double()
        with float64.mode():
            self._exact = self.outputs(lambda i: subject.entry.forward(wide, widened(i)))
        self._plain = self.outputs(lambda i: subject.entry.forward(subject.model, i))

    def outputs(self, forward: Forward) -> list[list[torch.Tensor]]:
        """Return the output tensors for each input."""
        return [leaves(forward(inputs)) for inputs in self.inputs]

    def judge(self, outputs: list[list[torch.Tensor]]) -> dict[str, Any]:
        """Judge outputs on all inputs, or on the first few, and return the evidence."""
        count = len(outputs)
        exact, plain, other = (_joined(side[:count]) for side in (self._exact, self._plain, outputs))
        floating = [(e, o) for e, o in zip(exact, other, strict=True) if o.is_floating_point()]
        compared = asdict(compare(*zip(*floating, strict=True))) if floating else None
        judged = agreement(exact, plain, other).to_dict("torch", "variant")
        return judged | {"compared": compared, "elements": self.elements * count // len(self.inputs)}


def _joined(outputs: list[list[torch.Tensor]]) -> list[torch.Tensor]:
    """Return every tensor of a model's outputs, concatenated over all inputs."""
    return [torch.cat([t.unsqueeze(0) if t.dim() == 0 else t for t in same]) for same in zip(*outputs, strict=True)]


def suspect(entry: Entry, plain: nn.Module, swapped: nn.Module, inputs: Sequence[Inputs]) -> str:
    """Return where a wrong variant goes wrong: the path of the first module to finish whose output is off; empty if
    each one is within tolerance. Inner modules finish first, so it is the innermost."""
    wide = copy.deepcopy(plain).double()
    with float64.mode():
        exact = _outputs(entry, wide, [widened(i) for i in inputs])
    usual = _outputs(entry, plain, inputs)
    for place, got in _outputs(entry, swapped, inputs).items():
        truth = exact.get(place)
        if truth is not None and place in usual and share(errors(got, truth), errors(usual[place], truth)) > 1:
            return place[0] or "(the model)"
    return ""


def _outputs(entry: Entry, model: nn.Module, inputs: Sequence[Inputs]) -> Outputs:
    """Return the outputs of every module that returns one floating-point tensor, in the order they finish, over all
    inputs."""
    kept: dict[tuple[str, int, tuple[int, ...]], list[torch.Tensor]] = {}
    for one in inputs:
        before: Counter[str] = Counter()

        def leave(path: str, output: Any, before: Counter[str] = before) -> None:
            if isinstance(output, torch.Tensor) and output.is_floating_point() and output.dim():
                place = path, before[path], tuple(output.shape)
                kept.setdefault(place, []).append(_some(output.detach()))
                before[path] += 1

        with watched(model, lambda path: None, leave):
            entry.forward(model, one)
    return {place: torch.cat(outputs) for place, outputs in kept.items()}


def _some(output: torch.Tensor) -> torch.Tensor:
    """Return evenly spaced rows, with an odd step, since an even one might always hit the same few positions."""
    step = math.ceil(output.numel() / _MOST) | 1
    return output.reshape(-1, output.shape[-1])[::step].clone()
