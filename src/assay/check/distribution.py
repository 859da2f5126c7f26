"""Judges an op that draws at random: the outcome of each element, their frequencies, and the seed's effect.

Every element must be one of the declared outcomes, rounded once or nearly so. The frequency of each outcome is compared
with its probability, over all elements and over each of the parts that careless generators treat alike (halves, odd and
even places, rows of a block). Elements at any distance must be independent, in one draw and in those of two seeds: a
block that is drawn again elsewhere, or with the next seed, is found by its correlation. All bounds are SIGMAS or
REPEATED standard deviations: an honest generator exceeds one of them in one of a million checks."""

from __future__ import annotations

import math
from typing import Any

from assay.check.judge import Finding
from assay.check.oracle import ulp
from assay.dtype import DType
from assay.float64 import exactly
from assay.lazy import torch
from assay.workload import Workload

SIGMAS = 6.0
REPEATED = 7.5
"""The same for the correlation at any distance, of which there are as many as elements."""
_COINCIDENCES = 30
"""The least number of pairs that are expected to draw the rarer outcome both; fewer would not be normally
distributed."""
_MANY = 1 << 20
"""The most elements whose correlation is computed."""
_NEAR = 4.0
"""Units of the output's format by which a value may differ from its outcome."""
_DISTANCES = (1, 2, 3, 4, 7, 8, 16, 31, 32, 64, 127, 128, 256, 512, 1024, 4096)
_ENOUGH = 64
"""The least number of elements for which frequencies are tested."""


def judge(
    workload: Workload,
    inputs: dict[str, torch.Tensor],
    first: torch.Tensor,
    again: torch.Tensor,
    other: torch.Tensor,
    number: DType,
) -> Finding | None:
    """Return a finding or None. `first` and `again` were drawn with the same seed, `other` with another."""
    op = workload.op
    assert op.random is not None
    if not torch.equal(first.double().nan_to_num(0.5), again.double().nan_to_num(0.5)):
        return Finding("seed", "the same seed gave another draw")
    outcomes = _outcomes(workload, inputs)
    drawn = _drawn(first, outcomes, number)
    if isinstance(drawn, Finding):
        return drawn
    elsewhere = _drawn(other, outcomes, number)
    if isinstance(elsewhere, Finding):
        return elsewhere
    chances = torch.stack([p for _, p in outcomes])
    certain = _indistinct(outcomes, number)
    if int((~certain).sum()) < _ENOUGH:
        return None
    for which in range(len(outcomes)):
        off = ((drawn == which).double() - chances[which])[~certain]
        off_elsewhere = ((elsewhere == which).double() - chances[which])[~certain]
        variance = (chances[which] * (1 - chances[which]))[~certain]
        if finding := _frequencies(off, variance, which) or _neighbours(off, variance, which):
            return finding
        if _deviations(off * off_elsewhere, variance * variance) > SIGMAS:
            return Finding("seed", f"two seeds draw outcome {which} at the same places more often than by chance")
        if apart := _apart(off, off, variance):
            return Finding("distribution", f"outcome {which} is drawn again {apart} elements further on")
        if (apart := _apart(off, off_elsewhere, variance)) is not None:
            return Finding("seed", f"two seeds draw outcome {which} alike, {abs(apart)} elements apart")
    return None


def _outcomes(workload: Workload, inputs: dict[str, torch.Tensor]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the value and the probability of each outcome, both of the output's shape, flat, in float64."""
    op = workload.op
    assert op.random is not None
    attributes = {n: v for n, v in workload.attributes if n != op.random.seed}
    declared: list[Any] = exactly(op.random.outcomes, map(inputs.get, op.inputs), attributes)
    return [
        (value.double().flatten(), torch.as_tensor(chance, dtype=torch.float64).expand(value.shape).flatten())
        for value, chance in declared
    ]


def _drawn(value: torch.Tensor, outcomes: list[Any], number: DType) -> torch.Tensor | Finding:
    """Return the index of the outcome that each element is; a finding if an element is none of them."""
    got = value.double().flatten()
    off = []
    for exact, chance in outcomes:
        rounded = number.rounded(exact)
        unit = ulp(torch.where(rounded.isfinite(), rounded, torch.zeros_like(rounded)), number)
        distance = torch.where(got == rounded, torch.zeros_like(got), (got - exact).abs() / unit)
        off.append(torch.where(chance > 0, distance, math.inf).nan_to_num(nan=math.inf))
    nearest, which = torch.stack(off).min(0)
    if bool((nearest > _NEAR).any()):
        place = int(nearest.argmax())
        allowed = " or ".join(f"{float(exact[place]):.6g}" for exact, _ in outcomes)
        return Finding(
            "values", f"element {place} is {float(got[place]):.6g}, which is none of its outcomes: {allowed}"
        )
    return which


def _indistinct(outcomes: list[Any], number: DType) -> torch.Tensor:
    """Return a mask of the elements whose outcomes are indistinguishable, such as those of x = 0."""
    values = torch.stack([number.rounded(exact) for exact, _ in outcomes])
    unit = ulp(values.abs().amax(0).nan_to_num(0.0, 0.0, 0.0), number)
    ordered = values.sort(0).values
    return (ordered.diff(dim=0).amin(0) <= 2 * _NEAR * unit) | ~values.isfinite().all(0)


def _deviations(off: torch.Tensor, variance: torch.Tensor) -> float:
    """Return by how many standard deviations a sum of independent terms of mean 0 is off."""
    spread = math.sqrt(float(variance.sum()))
    return abs(float(off.sum())) / spread if spread > 0 else 0.0


def _frequencies(off: torch.Tensor, variance: torch.Tensor, which: int) -> Finding | None:
    parts = {"": slice(None), " in the first half": slice(0, off.numel() // 2)}
    parts |= {" in the second half": slice(off.numel() // 2, None)}
    parts |= {f" at every {n}th element": slice(0, None, n) for n in (2, 3, 4, 8, 32, 64)}
    for where, part in parts.items():
        if off[part].numel() >= _ENOUGH and (far := _deviations(off[part], variance[part])) > SIGMAS:
            return Finding(
                "distribution", f"outcome {which} comes{where} {far:.1f} standard deviations off its probability"
            )
    return None


def _neighbours(off: torch.Tensor, variance: torch.Tensor, which: int) -> Finding | None:
    for distance in _DISTANCES:
        if off.numel() >= distance + _ENOUGH:
            far = _deviations(off[distance:] * off[:-distance], variance[distance:] * variance[:-distance])
            if far > SIGMAS:
                words = f"outcome {which} depends on the element {distance} before, by {far:.1f} standard deviations"
                return Finding("distribution", words)
    return None


def _apart(first: torch.Tensor, other: torch.Tensor, variance: torch.Tensor) -> int | None:
    """Return the distance at which the second draw repeats the first one; None if there is none. A draw repeats itself
    at 0, which does not count."""
    usable = variance > 0
    one, two = (torch.where(usable, off / variance.sqrt(), 0.0)[:_MANY] for off in (first, other))
    count = one.numel()
    rare = float(variance[usable].mean()) if bool(usable.any()) else 0.0
    overlap = count - torch.arange(count)
    sums = torch.fft.irfft(torch.fft.rfft(one, 2 * count).conj() * torch.fft.rfft(two, 2 * count), 2 * count)
    shifted = torch.cat([sums[count + 1 :], sums[:count]])  # by 1 − count … count − 1
    pairs = torch.cat([overlap[1:].flip(0), overlap])
    far = torch.where(pairs * rare**2 >= _COINCIDENCES, shifted.abs() / pairs.double().sqrt(), 0.0)
    if first is other:
        far[:count] = 0.0
    place = int(far.argmax())
    return place - (count - 1) if float(far[place]) > REPEATED else None
