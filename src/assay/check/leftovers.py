"""The contents of outputs and work space before a call. A kernel must neither read them nor detect by them that it is
being checked, so they differ in every run and are drawn where the kernel cannot see them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

from assay.dtype import DType, dtype
from assay.lazy import np, torch
from assay.worker.bits import bits
from assay.worker.request import TensorSpec

KINDS = {
    "nan": "one NaN everywhere",
    "number": "one number everywhere",
    "random": "random bits",
    "zeros": "zeros",
    "other": "the right result of other values",
    "shuffled": "the right result in another order",
}
"""Each kind with its description. A NaN propagates through arithmetic, a number exposes code that adds to it, plausible
contents expose a kernel that does not overwrite values that look right. For integers, `nan` is a number too."""

_NO_LAUNCH = ("torch", "inductor", "njit")
"""Languages whose kernels are plain calls."""


def before(
    kind: str,
    shape: tuple[int, ...],
    number: DType,
    rng: random.Random,
    right: torch.Tensor | None,
    other: torch.Tensor | None = None,
    unlike: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the contents of one tensor. `right` is what the call should write, `other` what an earlier call wrote;
    without them (work space has neither) the plausible kinds are random bits. These differ everywhere from `unlike`,
    the contents at the first call: an element that is right by chance in one of two calls is not in the other."""
    generator = torch.Generator().manual_seed(rng.getrandbits(63))
    held = number.torch
    if held == torch.bool and unlike is not None:
        return ~unlike
    if kind == "other" and other is not None:
        return other.clone()
    if kind == "shuffled" and right is not None and right.numel():
        return bits(right).flatten()[torch.randperm(right.numel(), generator=generator)].view(held).view(shape)
    if kind == "zeros":
        return torch.zeros((), dtype=held).expand(shape)
    if kind in ("nan", "number"):
        return _constant(kind, shape, number, rng)
    if held == torch.bool:
        return ~right if right is not None else torch.randint(0, 2, shape, generator=generator, dtype=torch.bool)
    size = math.prod(shape) * number.itemsize
    drawn = bytearray(np.random.default_rng(rng.getrandbits(63)).bytes(size))
    values = torch.frombuffer(drawn, dtype=torch.uint8).view(held).view(shape) if size else torch.empty(shape).to(held)
    few = right if number.itemsize == 1 else None  # one in 256 would be right by chance
    return _changed(values, [bits(other) for other in (few, unlike) if other is not None])


def _changed(values: torch.Tensor, others: list[torch.Tensor]) -> torch.Tensor:
    """Return the values with another bit wherever one of up to two others is the same."""
    drawn = changed = bits(values)
    for flipped in (1, 2):  # of three different values, one is neither of the others
        for other in others:
            changed = torch.where(changed == other, drawn ^ flipped, changed)
    return changed.view(values.dtype)


def _constant(kind: str, shape: tuple[int, ...], number: DType, rng: random.Random) -> torch.Tensor:
    """Return a NaN with an unusual payload, or a number of ordinary size."""
    if number.torch == torch.bool:
        return torch.tensor(bool(rng.getrandbits(1))).expand(shape)
    if number.is_float and kind == "number":
        return torch.tensor(rng.uniform(1.0, 2.0) * rng.choice((-1, 1))).to(number.torch).expand(shape)
    integer = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[number.itemsize]
    width = 8 * number.itemsize
    pattern = _nan(number, rng) if number.is_float and width > 8 else rng.getrandbits(width)
    signed = pattern - (1 << width) if width > 8 and pattern >= 1 << (width - 1) else pattern
    return torch.tensor(signed, dtype=integer).view(number.torch).expand(shape)


def _nan(number: DType, rng: random.Random) -> int:
    """Return a quiet NaN with a payload that no arithmetic makes: a poison of the format with other last bits, neither
    all 0, as in a processor's NaN, nor all 1, as in a GPU's."""
    low = (1 << max(2, number.fraction - 2)) - 1
    return (number.poisons[rng.randrange(2)] & ~low) | rng.randint(1, low - 1)


def kept(result: torch.Tensor, held: torch.Tensor) -> torch.Tensor:
    """Return a mask of the elements of a result that are, bit for bit, the contents before the call."""
    return (bits(result) == bits(held)).flatten()


def replaced(result: torch.Tensor, right: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
    """Return the result with the right values at some of its elements."""
    chosen = torch.where(which.view_as(right), bits(right), bits(result.contiguous()))
    return chosen.view(result.dtype)


def unwritten(
    specs: Iterable[TensorSpec], calls: list[tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]], backend: str = ""
) -> str:
    """Describe the elements that no call has written; empty if there are none. `calls` has the results of each call and
    the contents before it: an element that every call left unchanged was never written. `backend`: the kernel's."""
    first, held = calls[0]
    for spec in specs:
        name, number = spec.name, dtype(spec.dtype)
        if spec.alias or not first[name].numel():
            continue
        if len(calls) == 1 and number.itemsize <= (1 if number.is_float else 2):
            continue  # with so few bits a right result often equals the old content: one call proves nothing
        never = kept(first[name], held[name])
        for result, before_it in calls[1:]:
            never &= kept(result[name], before_it[name])
        if count := int(never.sum()):
            total = never.numel()
            if count == total:
                why = "the kernel launched nothing, or wrote elsewhere"
                if backend in _NO_LAUNCH:
                    why = f"the result must be written into that tensor, and `{name} = …` only names another one"
                return f"nothing was written to `{name}`: {why}"
            return f"{count} of {total} elements of `{name}` were never written, first at {int(never.nonzero()[0])}"
    return ""
