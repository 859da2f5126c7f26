"""From an operator's arguments to the sizes of its outputs and of everything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from assay.dtype import dtype
from assay.errors import UsageError
from assay.models.operators.contract import Sizes
from assay.op import Op


class Shapes:
    def __init__(self, op: Op, outputs: tuple[str, ...]) -> None:
        self.op, self.count = op, len(op.inputs)
        inputs = list(op.inputs.values())
        self.carrier = next((i for i, t in enumerate(inputs) if t.dtype is None and not t.optional), None)
        """The input whose dtype is the workload's."""
        self.places: dict[str, tuple[int, int]] = {}
        for i, tensor in enumerate(inputs):
            for j, dim in enumerate(tensor.shape):
                if isinstance(dim, str) and dim in op.axes and not tensor.optional:
                    self.places.setdefault(dim, (i, j))
        if hidden := sorted(set(op.axes) - set(self.places)):
            raise UsageError(f"{op.name}: no input tells its axis '{hidden[0]}'", fix="such an op cannot be swapped in")
        self.made = [
            (n, op.outputs[n].shape, dtype(fixed).torch if (fixed := op.outputs[n].dtype) else None) for n in outputs
        ]
        known = all(isinstance(d, int) or d in self.places for _, shape, _ in self.made for d in shape)
        self.read = [[d if isinstance(d, int) else self.places[d] for d in shape] for _, shape, _ in self.made if known]
        """Where each size of each output is found in the arguments; empty if one must be computed."""
        self.twin = all(fixed is None and shape == inputs[self.carrier or 0].shape for _, shape, fixed in self.made)
        """Every output is like the first input that carries the dtype."""

    def named(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        """Axes and attributes by name."""
        sizes = {axis: arguments[i].shape[j] for axis, (i, j) in self.places.items()}
        sizes.update(zip(self.op.attributes, arguments[self.count :], strict=False))
        return sizes

    def number(self, arguments: tuple[Any, ...]) -> torch.dtype:
        """The workload's dtype."""
        value: torch.dtype = arguments[-1] if self.carrier is None else arguments[self.carrier].dtype
        return value

    def extent(self, shape: Sequence[str | int], sizes: dict[str, Any]) -> list[Any]:
        derived: dict[str, Any] = dict(self.op.derived)
        return [d if isinstance(d, int) else derived[d](Sizes(sizes)) if d in derived else sizes[d] for d in shape]

    def empty(self, arguments: tuple[Any, ...]) -> dict[str, torch.Tensor]:
        """The outputs, allocated."""
        if self.twin and self.carrier is not None:
            like = arguments[self.carrier]
            return {n: torch.empty_like(like, memory_format=torch.contiguous_format) for n, _, _ in self.made}
        number, first = self.number(arguments), arguments[0]
        if self.read:  # quicker than by their names
            extents = [[d if isinstance(d, int) else arguments[d[0]].shape[d[1]] for d in read] for read in self.read]
        else:
            sizes = self.named(arguments)
            extents = [self.extent(shape, sizes) for _, shape, _ in self.made]
        return {
            n: first.new_empty(extent, dtype=fixed or number)
            for (n, _, fixed), extent in zip(self.made, extents, strict=True)
        }
