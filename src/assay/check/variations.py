"""Sets of input values that differ little from one another, which expose a kernel that returns a cached answer.

A cache keyed by the address, the shape, a few elements, a sum or a checksum confuses two different inputs. So besides
fresh values there are runs in which one element changed, chosen where the kernel cannot see it and such that the old
answer is wrong; a few percent of the elements; or only their order, which keeps every sum."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from assay.inputs import given
from assay.lazy import torch
from assay.op import Tensor
from assay.worker.bits import bits
from assay.workload import Workload

_TRIES = 6
"""The most elements to try until the answer changes by enough."""
_SHARE = 0.03
"""The share of elements changed in a variation of a few percent."""

Values = dict[str, "torch.Tensor"]
Tells = Callable[[Values], bool]
"""Whether the judge distinguishes the right answer to these values from the right answer to the first."""


@dataclass(frozen=True)
class Variation:
    values: Values
    change: str
    """A description of how it differs from the first set."""


def free(tensor: Tensor) -> bool:
    """True if the elements may be changed one by one: they do not follow from other inputs or from one another."""
    return tensor.given is None and not getattr(tensor, "form", "")


def one_element(
    workload: Workload, first: Values, fresh: Values, name: str, rng: random.Random, tells: Tells
) -> Variation | None:
    """Return the values with one element of `name` changed; None if no change that was tried matters to the result."""
    op = workload.op
    base = first[name]
    if not base.numel():
        return None
    if not free(op.inputs[name]):
        values = completed(workload, first | {name: fresh[name]})
        return Variation(values, f"`{name}` changed") if tells(values) else None
    places = _inner(base.numel(), rng)
    for number in range(_TRIES):
        place = next(places)
        was = base.flatten()[place].item()
        now = _other(op.inputs[name], base, fresh[name].flatten()[place], was, number, rng)
        if now is None:
            continue
        changed = base.clone()
        bits(changed).view(-1)[place] = bits(now.view(1))[0]
        if changed.view(-1)[place].item() == was:
            continue
        values = completed(workload, first | {name: changed})
        if tells(values):
            return Variation(values, f"element {place} of `{name}` changed from {was:g} to {float(now):g}")
    return None


def few_elements(workload: Workload, first: Values, fresh: Values, name: str, rng: random.Random) -> Variation:
    """Return the values with a few percent of the elements of `name` changed, at least two."""
    op = workload.op
    base = first[name].clone()
    if not free(op.inputs[name]):
        return Variation(completed(workload, first | {name: fresh[name]}), f"`{name}` changed")
    count = min(base.numel(), max(2, int(base.numel() * _SHARE)))
    chosen = torch.randperm(base.numel(), generator=torch.Generator().manual_seed(rng.getrandbits(63)))[:count]
    bits(base).view(-1)[chosen] = bits(fresh[name]).flatten()[chosen]
    return Variation(completed(workload, first | {name: base}), f"{count} elements of `{name}` changed")


def reordered(workload: Workload, first: Values, rng: random.Random) -> Variation:
    """Return the same elements in another order, which keeps every sum and every count."""
    op = workload.op
    generator = torch.Generator().manual_seed(rng.getrandbits(63))
    values = {
        n: bits(v).flatten()[torch.randperm(v.numel(), generator=generator)].view(v.dtype).view(v.shape)
        if free(op.inputs[n])
        else v
        for n, v in first.items()
    }
    return Variation(completed(workload, values), "the elements changed places")


def completed(workload: Workload, values: Values) -> Values:
    """Return the values with the inputs that follow from others computed again."""
    op = workload.op
    inputs = dict(values)
    for name in values:
        function = op.inputs[name].given
        if function is not None:
            inputs[name] = given(function, workload, inputs).to(values[name].dtype).contiguous()
    return inputs


def _inner(count: int, rng: random.Random) -> Iterator[int]:
    """Yield random places. The ends and the middle, which people sample, are avoided if there are others."""
    avoid = {0, count - 1, count // 2, (count - 1) // 2} if count > 8 else set()
    while True:
        place = rng.randrange(count)
        if place not in avoid:
            yield place


def _other(
    tensor: Tensor, base: torch.Tensor, fresh: torch.Tensor, was: float, number: int, rng: random.Random
) -> torch.Tensor | None:
    """Return another value for one element: at first the fresh one, then values further away, within the contract."""
    if number < 2 or not base.is_floating_point():
        return fresh if math.isfinite(fresh.item()) and was == was else None
    wide = base.double()
    finite = wide[wide.isfinite()]
    scale = float(finite.abs().max()) if finite.numel() else 1.0
    low, high = tensor.range
    wanted = rng.choice((-1, 1)) * (scale or 1.0) * rng.uniform(0.5, 1.0) * (1 if number < 4 else 8)
    return torch.tensor(min(max(wanted, low), high), dtype=torch.float64).to(base.dtype)
