"""The model under study, with its weights and inputs, in one dtype on one device."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay import float64
from assay.dtype import dtype as format_called
from assay.models.subject.entry import Entry, Inputs
from assay.models.subject.registry import entry

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Setup:
    """The model that a process builds. All processes that a study compares get the same."""

    model: str
    dtype: str
    device: str
    seed: int = 0
    threads: int = 0
    """CPU threads; 0: torch's default."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options that are not at their defaults."""
    weights: str = ""
    """File of weights; empty: the initial weights of the seed."""
    source: str = "seeded"
    """`given`, `trained`, `published` or `seeded`."""


@dataclass(frozen=True)
class Subject:
    entry: Entry
    model: torch.nn.Module
    dtype: str
    device: str
    seed: int
    weights: dict[str, str]
    """Origin of the weights: `from`, and for a file also `file` and `sha256`."""
    _made: dict[int, Inputs] = field(default_factory=dict)

    def inputs(self, batch: int) -> Inputs:
        """Return the same tensors at every call, since CUDA graphs would copy others to the captured ones."""
        if batch not in self._made:
            self._made[batch] = self.entry.example(batch, self.seed, device=self.device, dtype=self.dtype)
        return self._made[batch]

    def exact(self, batch: int) -> Any:
        """Return the model's outputs in float64, from weights and inputs rounded to the dtype."""
        wide, inputs = copy.deepcopy(self.model).double(), widened(self.inputs(batch))
        with float64.mode():
            return self.entry.forward(wide, inputs)


def widened(inputs: Inputs) -> Inputs:
    """Return the inputs with floating-point tensors in float64."""
    import torch
    from torch.utils import _pytree as pytree

    def one(leaf: Any) -> Any:
        return leaf.double() if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf

    wide: Inputs = pytree.tree_map(one, inputs)
    return wide


def load(setup: Setup) -> Subject:
    """Load the model of the setup. This sets threads and the precision of products for the whole process."""
    import torch

    from assay.backends.torch import in_full_precision

    if setup.threads:
        torch.set_num_threads(setup.threads)
    in_full_precision()
    known = entry(setup.model)
    model = known.build(setup.seed, **setup.options)
    weights = {"from": setup.source}
    if setup.weights:
        file = Path(setup.weights)
        known.load(model, file)
        weights |= {"file": file.name, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    model = model.to(setup.device, format_called(setup.dtype).torch).eval()
    return Subject(known, model, setup.dtype, setup.device, setup.seed, weights)
