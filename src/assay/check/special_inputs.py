"""Says which inputs behind a wrong result are NaN or infinite, and writes out all inputs of a small workload: that may
be the only clue in the smallest workload that fails."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from assay.lazy import torch
from assay.op import Op, Tensor

_FEW = 8
"""The most elements of an input that is written out."""


def behind(
    op: Op, inputs: Mapping[str, torch.Tensor], results: Mapping[str, torch.Tensor], output: str, place: int
) -> str:
    """Return what to add to the reason of a failure in one element of an output, given its index in the flattened
    tensor: the inputs that are NaN or infinite there or, along the axis of independent results, beside it. Empty if
    there are none."""
    shape = results[output].shape
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(place), shape))
    axes = zip(op.outputs[output].shape, index, strict=False)
    at: dict[str | int, int] = {axis: i for axis, i in axes if axis == op.independent}
    descriptions = []
    for name, value in inputs.items():
        if not value.is_floating_point():
            continue
        part = _part(value, op.inputs[name], at).double()
        if not (odd := int(part.numel() - part.isfinite().sum())):
            continue
        here = float(value[index]) if value.shape == shape else 0.0
        if not math.isfinite(here):
            descriptions.append(f"`{name}` is {here:g} there")
            continue
        where = "".join(f" where {axis} is {i}" for axis, i in at.items() if axis in op.inputs[name].shape)
        nan = int(part.isnan().sum())
        counts = (f"{n} {kind}" for n, kind in ((nan, "NaN"), (odd - nan, "infinite")) if n)
        descriptions.append(f"`{name}` has {' and '.join(counts)} value{'s' * (odd != 1)}{where}")
    return "".join(f"; {one}" for one in descriptions)


def written(inputs: Mapping[str, torch.Tensor]) -> str:
    """Return all inputs with their elements, as `x = [0.5, nan]`; empty if one has many."""
    if any(value.numel() > _FEW for value in inputs.values()):
        return ""
    return ", ".join(f"{name} = {_nested(value.tolist())}" for name, value in inputs.items())


def _nested(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_nested, value))}]"
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _part(value: torch.Tensor, declared: Tensor, at: Mapping[str | int, int]) -> torch.Tensor:
    """Return the part of an input that independent results at these indices depend on."""
    for axis, i in at.items():
        if axis in declared.shape:
            value = value.select(declared.shape.index(axis), i)
    return value
