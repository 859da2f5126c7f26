"""Draws an op's inputs from a workload: the same printed workload gives the same bits on every machine."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import Any

from assay import values
from assay.float64 import exactly
from assay.lazy import torch
from assay.op import Op, Tensor
from assay.values import Range
from assay.workload import Workload

FRESH = 3
"""Number of variations of one workload's values that a trial uses."""


def generate(workload: Workload, variation: int = 0) -> dict[str, torch.Tensor]:
    """Return the inputs present in `workload`, contiguous, on the CPU, in their dtypes."""
    op = workload.op
    drawn: dict[str, torch.Tensor] = {}
    for name, tensor in workload.present.items():
        if tensor.given is None:
            seed = zlib.crc32(f"{op.name}/{name}/{workload.seed}/{variation}".encode())
            drawn[name] = _draw(op, tensor, workload, torch.Generator().manual_seed(seed))
    for name, tensor in workload.present.items():
        if tensor.given is not None:
            drawn[name] = given(tensor.given, workload, drawn).to(workload.dtype_of(tensor).torch)
    return {name: drawn[name] for name in workload.present}


def given(function: Callable[..., Any], workload: Workload, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return an input that follows from others, in float64. The function asks by name for inputs, which are None where
    they are left out, and for attributes."""
    known = dict.fromkeys(workload.op.inputs) | inputs | dict(workload.attributes)
    wanted = function.__code__.co_varnames[: function.__code__.co_argcount]
    value: torch.Tensor = exactly(function, (known[n] for n in wanted), {})
    return value


def _draw(op: Op, tensor: Tensor, workload: Workload, rng: torch.Generator) -> torch.Tensor:
    number, shape, kind = workload.dtype_of(tensor), workload.shape(tensor), workload.values
    wanted = shape
    if kind == "normal" and not tensor.form and math.prod(shape) > values.BLOCK:
        shape = (values.BLOCK,)  # repeated below, in the tensor's own format
    if tensor.index:
        ends = tensor.form == "offsets"  # which may be the length itself
        drawn = values.indices(kind, shape, workload.length(tensor.index) + ends, rng)
    elif number.is_float:
        within = _range(tensor, -number.max, number.max, workload)
        drawn = values.floats(kind if _may_be(kind, tensor.form) else "normal", shape, within, rng)
    else:
        assert number.integers is not None
        drawn = values.integers(kind, shape, _range(tensor, *number.integers, workload), rng)
    return values.repeated(_formed(tensor, drawn, workload, rng).to(number.torch), wanted)


def _range(tensor: Tensor, least: float, most: float, workload: Workload) -> Range:
    """Return the declared range, limited to what the format can hold."""
    number, beyond = workload.dtype_of(tensor), workload.values == "beyond"
    low, high = (least, most) if beyond else (max(tensor.range[0], least), min(tensor.range[1], most))
    if not number.is_float:
        return Range(low, high, number, tuple(s for s in tensor.specials if least <= s <= most))
    return Range(low, high, number, (math.nan, math.inf, -math.inf) if beyond else tensor.specials)


def _may_be(kind: str, form: Any) -> bool:
    """Return whether values of a form may be of this kind. What a function makes may be small: it decides itself what
    its values become, and others, such as rows of zeros, need not suit it."""
    return form in ("", "sorted", "unique") or (callable(form) and (kind == "small" or kind.startswith("near:")))


def _formed(tensor: Tensor, drawn: torch.Tensor, workload: Workload, rng: torch.Generator) -> torch.Tensor:
    """Return the drawn values, changed to have the property that the tensor declares."""
    form = tensor.form
    if not form or not drawn.numel():
        return drawn
    if callable(form):
        made: torch.Tensor = form(drawn.double())
        return made
    if form == "sorted":
        return drawn.sort(-1).values
    if form == "offsets":
        ascending = drawn.sort(-1).values
        ascending[..., -1], ascending[..., 0] = workload.length(tensor.index), 0
        return ascending
    if form == "unique":
        return _unique(tensor, drawn, workload, rng)
    if form == "row_stochastic":
        return drawn.double().softmax(-1)
    square = drawn.double()
    return square @ square.mT / square.shape[-1] + torch.eye(square.shape[-1], dtype=torch.float64)


def _unique(tensor: Tensor, drawn: torch.Tensor, workload: Workload, rng: torch.Generator) -> torch.Tensor:
    """Return values distinct along the last dimension: indices without replacement, other numbers spread apart."""
    length = drawn.shape[-1]
    if tensor.index:
        size = workload.length(tensor.index)
        rows = [torch.randperm(size, generator=rng)[:length] for _ in range(drawn.numel() // length)]
        return torch.stack(rows).view(drawn.shape)
    ranks = torch.stack([torch.randperm(length, generator=rng) for _ in range(drawn.numel() // length)])
    low, high = tensor.range
    step = min((high - low) / max(1, length), 1.0)
    return (ranks.double() * step + max(low, -step * length / 2)).view(drawn.shape)
