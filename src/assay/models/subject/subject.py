"""The model under study, with its inputs, in one format on one device."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.dtype import dtype as format_called
from assay.models.subject.registry import Entry, Inputs, entry

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Subject:
    entry: Entry
    model: torch.nn.Module
    dtype: str
    device: str
    seed: int
    _made: dict[int, Inputs] = field(default_factory=dict)

    def inputs(self, batch: int) -> Inputs:
        """The same tensors whenever asked: CUDA graphs would copy others to where they were captured."""
        if batch not in self._made:
            self._made[batch] = self.entry.example(batch, self.seed, device=self.device, dtype=self.dtype)
        return self._made[batch]

    def exact(self, batch: int) -> Any:
        """The model's outputs in float64, from weights and inputs that were rounded to the format."""
        return self.entry.forward(copy.deepcopy(self.model).double(), widened(self.inputs(batch)))


def widened(inputs: Inputs) -> Inputs:
    """Their floating tensors in float64."""
    import torch
    from torch.utils import _pytree as pytree

    def one(leaf: Any) -> Any:
        return leaf.double() if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf

    wide: Inputs = pytree.tree_map(one, inputs)
    return wide


def load(name: str, dtype: str, device: str, seed: int) -> Subject:
    """With the initial weights of that seed: what compiling costs and buys does not depend on them."""
    found = entry(name)
    model = found.build(seed).to(device, format_called(dtype).torch).eval()
    return Subject(found, model, dtype, device, seed)
