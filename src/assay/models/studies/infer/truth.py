"""What a model should return at one batch size: in float64, and as plain PyTorch has it, on inputs enough to judge by.

Ten logits of one image share their errors: of two right ways to compute them, one may be off by thrice as much as the
other. So a small batch is judged on several inputs."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import torch

from assay.models.studies.agreement import leaves
from assay.models.studies.infer.outputs import ENOUGH, judged
from assay.models.subject.registry import Inputs
from assay.models.subject.subject import Subject, widened

Forward = Callable[[Inputs], Any]


class Truth:
    def __init__(self, subject: Subject, batch: int, least: int = ENOUGH) -> None:
        """`least`: elements to be judged on; 1: a single input, where each takes long."""
        count = math.ceil(least / batch)
        more = [
            subject.entry.example(batch, subject.seed + n, device=subject.device, dtype=subject.dtype)
            for n in range(1, count)
        ]
        self.inputs = [subject.inputs(batch), *more]
        self.elements = batch * count
        wide = copy.deepcopy(subject.model).double()
        self._exact = self.outputs(lambda i: subject.entry.forward(wide, widened(i)))
        self._plain = self.outputs(lambda i: subject.entry.forward(subject.model, i))

    def outputs(self, forward: Forward) -> list[list[torch.Tensor]]:
        """Input → tensors."""
        return [leaves(forward(inputs)) for inputs in self.inputs]

    def judge(self, mine: list[list[torch.Tensor]]) -> dict[str, Any]:
        """Of the outputs on all inputs, or on the first of them."""
        told = judged(*(_joined(side[: len(mine)]) for side in (self._exact, self._plain, mine)))
        return told | {"elements": self.elements * len(mine) // len(self.inputs)}


def _joined(outputs: list[list[torch.Tensor]]) -> list[torch.Tensor]:
    """Every tensor of a model's outputs, all inputs one after the other."""
    return [torch.cat([t.unsqueeze(0) if t.dim() == 0 else t for t in same]) for same in zip(*outputs, strict=True)]
