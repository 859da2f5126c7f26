"""Draws an op's inputs from a workload: the same printed workload gives the same bits on every machine."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.op import Op, Tensor
from assay.workload import Workload

if TYPE_CHECKING:
    import torch

_BLOCK = 134_217_689
"""The largest prime below 2**27."""
FRESH = 3
"""Variations of one workload's values that a trial uses."""


def generate(op: Op, workload: Workload, variation: int = 0) -> dict[str, torch.Tensor]:
    """The inputs present in `workload`, contiguous, on the CPU, in their dtypes."""
    import torch

    drawn: dict[str, torch.Tensor] = {}
    for name, tensor in op.present(workload).items():
        if tensor.given is None:
            seed = zlib.crc32(f"{op.name}/{name}/{workload.seed}/{variation}".encode())
            values = _draw(tensor, op.shape(tensor, workload), workload, torch.Generator().manual_seed(seed))
            drawn[name] = values.to(tensor.dtype_in(workload).torch)
    for name, tensor in op.present(workload).items():
        if tensor.given is not None:
            exact = {n: v.double() for n, v in drawn.items()} | dict(workload.attributes)
            wanted = tensor.given.__code__.co_varnames[: tensor.given.__code__.co_argcount]
            drawn[name] = tensor.given(*(exact[n] for n in wanted)).to(tensor.dtype_in(workload).torch)
    return {name: drawn[name] for name in op.present(workload)}


def _normal(shape: tuple[int, ...], rng: torch.Generator) -> torch.Tensor:
    """Unit normals. A huge tensor repeats a block whose length is a prime, so that no power of two of elements away
    stands the same value: an index that wraps around is still seen."""
    import torch

    total = math.prod(shape)
    if total <= _BLOCK:
        return torch.randn(shape, generator=rng, dtype=torch.float32)
    block = torch.randn(_BLOCK, generator=rng, dtype=torch.float32)
    return block.repeat(-(-total // _BLOCK))[:total].view(shape)


def _draw(tensor: Tensor, shape: tuple[int, ...], workload: Workload, rng: torch.Generator) -> torch.Tensor:
    import torch

    number = tensor.dtype_in(workload)
    if not number.is_float:
        return _draw_integers(tensor, shape, workload, rng)
    limit = number.max
    low, high = max(tensor.range[0], -limit), min(tensor.range[1], limit)
    kind = workload.values
    if kind == "beyond":
        low, high = -limit, limit
    normal = _normal(shape, rng)
    if kind == "small":
        values = normal * 2.0**-10
    elif kind == "offset":
        values = normal + min(1000.0, high / 4)
    elif kind in ("wide", "beyond"):
        exponents = torch.rand(shape, generator=rng, dtype=torch.float32) * (math.log2(high) + 20) - 20
        values = torch.exp2(exponents.double()) * normal.sign()
    else:
        values = normal
    values = values.clamp_(low, high)
    specials = (math.nan, math.inf, -math.inf) if kind == "beyond" else tensor.specials
    return _sprinkled(values, specials, rng) if kind in ("special", "beyond") else values


def _draw_integers(tensor: Tensor, shape: tuple[int, ...], workload: Workload, rng: torch.Generator) -> torch.Tensor:
    """Around the middle of their range, a sixteenth of it wide; `wide`: anywhere in it. In float32: up to 2**24."""
    import torch

    held = torch.iinfo(tensor.dtype_in(workload).torch)
    low, high = max(tensor.range[0], held.min), min(tensor.range[1], held.max)
    kind = workload.values
    if kind == "beyond":
        low, high = held.min, held.max
    middle, length = (low + high) / 2, high - low
    if kind in ("wide", "beyond"):
        values = torch.rand(shape, generator=rng, dtype=torch.float32) * length + low
    else:
        away = length / 4 if kind == "offset" else 0.0
        values = _normal(shape, rng) * (1.0 if kind == "small" else length / 16) + (middle + away)
    values = values.round_().clamp_(low, high)
    fitting = [s for s in tensor.specials if held.min <= s <= held.max]
    return _sprinkled(values, fitting, rng) if kind == "special" else values


def _sprinkled(values: torch.Tensor, specials: Sequence[float], rng: torch.Generator) -> torch.Tensor:
    """Special values at a few places."""
    import torch

    if specials and values.numel():
        count = max(1, min(8, values.numel() // 64))
        where = torch.randint(values.numel(), (count,), generator=rng)
        which = torch.randint(len(specials), (count,), generator=rng)
        values.view(-1)[where] = torch.tensor(specials, dtype=values.dtype)[which]
    return values
