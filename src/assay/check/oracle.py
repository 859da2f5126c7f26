"""The right answer to a workload, and how far an honest kernel may be from it.

The oracle is the op's reference in float64. The unit of error is one ulp at the larger of |oracle| and the scale at
which the op's arithmetic rounds; for 16-bit outputs that scale counts in float32, where their arithmetic is done, so
that a result small against its terms is still judged. Where there is one right answer, as for integers and for ops that
move data, nothing else passes, down to the sign of zero. An integer that a rounding decides may be either neighbour."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from assay.check import evaluations, overflow, raising, rounding, special_inputs
from assay.check.shapes import verify_shapes
from assay.check.undeclared import Undeclared, undeclared
from assay.dtype import DType, dtype
from assay.float64 import exactly, widened
from assay.lazy import np, torch
from assay.op import Op
from assay.workload import Workload

SHARE = {"rms": (0.5, 1 / 4), "p995": (1.0, 1 / 2), "max": (0.0, 1.0)}
"""By figure: units plus a share of the bound on what a careful evaluation loses in single elements, at most that."""
SHARED = {"rms": 0.6, "p995": 1.0, "max": 1.0}
"""By figure: the share of the bound on what a careful evaluation loses in sums."""
ONCE = {"rms": 0.5, "p995": 1.0, "max": 1.0}
"""Units by which a result rounded once may be off: half a unit, and as much again for ties that fall the other way."""
UNBIASED = 0.25
"""Units by which the mean error of a result rounded to nearest may be off zero; truncation is off by half a unit."""
FEW = 64
"""Bins with fewer elements are joined with their neighbour."""
_EXPONENT = 0x7FF << 52
"""The bits of a float64 that hold its exponent."""
_FIRST_BITS = 3 if sys.byteorder == "little" else 0
"""The index of the 16 bits of a float64 that hold its sign and exponent."""
_SMALLEST_NORMAL = 2.0**-126
_SMALLEST = 8 * _SMALLEST_NORMAL
"""Float32 arithmetic may flush subnormal numbers to zero, as GPUs do in approximate functions and CuPy does everywhere;
this is the error of a few such terms. An op that only moves data may not flush."""
_SAMPLES, _TIMES = 24, 2.0
"""Disturbed evaluations of integers, and the size of their errors in those of one float32 evaluation: a kernel may
round a few times more than the reference."""
_DISTURBED = 6
"""Samples that estimate the cost of flushing."""
_DEVIATIONS = 4.0
"""Standard deviations in a unit: honest evaluations stay within two units, eight of them."""
_OTHER_FORMULA = 1.5
"""The errors of samples that decide before a kernel is called wrong, in those of one float32 evaluation of the
reference: another formula may round more often."""
_LEAST = 0.5
"""An estimated deviation is at least this share of the lower quartile of those at results of its size."""


@dataclass(frozen=True)
class Oracle:
    """The reference in float64, and how many ulps float32 arithmetic may lose at each output's magnitude."""

    exact: dict[str, torch.Tensor]
    magnitude: dict[str, torch.Tensor | None]
    single: float = 1.0
    """Ulps lost by the roundings of single elements."""
    in_sums: dict[str, float] = field(default_factory=dict)
    """Ulps lost by adding terms, for each output."""
    spread: dict[str, torch.Tensor] | None = None
    """Standard deviation of each element under random rounding (assay.check.rounding), for an op without a declared
    magnitude."""

    flushed: dict[str, torch.Tensor] | None = None
    """How far each element may move if numbers below float32's smallest normal one are taken for zero, as CuPy's
    kernels and approximate functions do."""
    signed: bool = True
    """Whether the sign of a zero counts, if there is one right answer."""
    half: dict[str, torch.Tensor] | None = None
    """The scale of intermediate values that kernels round to a 16-bit format."""
    refined: Callable[[], Oracle | None] = lambda: None
    """The same with the spread estimated from many samples, with room for another formula; None if there is no spread.
    Computed on first use."""
    others: Callable[[], list[dict[str, torch.Tensor]]] = list
    """The outputs of other honest float32 evaluations than PyTorch's, computed on first use."""
    between: Callable[[], dict[str, tuple[torch.Tensor, torch.Tensor]]] = dict
    """The least and the largest value of each integer of honest evaluations, if it follows from numbers that are
    rounded: of a value halfway between two codes either may be the result. Computed on first use."""
    undeclared: Callable[[], Undeclared | None] = lambda: None
    """The op, if it is a user's and declares no magnitude; for the reason of a failure."""
    behind: Callable[[str, int], str] = lambda output, place: ""
    """The inputs behind one element of an output that are NaN or infinite, as text for the reason of a failure."""

    def rounded(self, name: str, number: DType) -> torch.Tensor:
        """Return the right answer in the output's format, as float64."""
        return number.rounded(self.exact[name].double())

    def unit(self, name: str, rounded: torch.Tensor, number: DType) -> torch.Tensor:
        """Return one ulp of the output's format at max(|oracle|, magnitude); 1 for integers. A 16-bit result is off by
        half an ulp of its own and by `lost` ulps of float32: together at most the larger of twice each."""
        if not number.is_float:
            return torch.ones_like(rounded)
        finite = _or_zero(rounded)
        if self.half is not None and number.itemsize < 4:
            finite = torch.maximum(finite.abs(), self.half[name])
        unit, magnitude = ulp(finite, number).clamp(min=_SMALLEST), self.magnitude[name]
        if self.flushed is not None:
            unit = torch.maximum(unit, self.flushed[name].nan_to_num(0.0, 0.0, 0.0))
        if self.spread is not None:
            wide = self.spread[name] * (_DEVIATIONS if number.itemsize >= 4 else 2 * self.lost(name) * _DEVIATIONS)
            return torch.maximum(unit, _or_zero(wide))
        if magnitude is None:
            return unit
        scale = _or_zero(magnitude).expand_as(rounded)
        wide = ulp(scale, number) if number.itemsize >= 4 else 2 * self.lost(name) * ulp(scale, dtype("fp32"))
        return torch.maximum(unit, wide)

    def range_of(self, name: str) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Return the least and the largest value of each integer of this output; None where one alone is right."""
        return self.between().get(name)

    def lost(self, name: str) -> float:
        """Return the ulps lost in single elements and in sums together."""
        return self.single + self.in_sums.get(name, 0.0)

    def floor(self, name: str, number: DType) -> dict[str, float]:
        """Return the error in units that every kernel is allowed."""
        if number.itemsize < 4:
            return ONCE | {"bias": UNBIASED}
        single = self.single
        own = {k: max(ONCE[k], min(single, units + share * single)) for k, (units, share) in SHARE.items()}
        return {k: own[k] + SHARED[k] * self.in_sums.get(name, 0.0) for k in own}

    def only(self, name: str, number: DType) -> bool:
        """True if there is one right answer: an integer, or a result that is exact but for its last rounding."""
        return not number.is_float or self.lost(name) == 0


def oracle(workload: Workload, inputs: dict[str, torch.Tensor]) -> Oracle:
    """Evaluate the reference in float64 on a private copy of the inputs."""
    op = workload.op
    wide = [widened(inputs[n]) if n in inputs else None for n in op.inputs]
    attributes = dict(workload.attributes)
    with raising.named(workload, "the reference failed"):
        results = exactly(op.reference, wide, attributes)
    exact = _per_output(op, results)
    verify_shapes(workload, inputs, exact)
    scale: dict[str, torch.Tensor | None] = dict.fromkeys(op.outputs)
    if op.magnitude is not None:
        scale = dict(_per_output(op, exactly(op.magnitude, wide, attributes)))
    half = _per_output(op, exactly(op.half_magnitude, wide, attributes)) if op.half_magnitude else None
    flushed = _flushed(op, wide, attributes, exact) if workload.values == "subnormal" else None
    others = cache(lambda: evaluations.others(workload, inputs))
    between = cache(lambda: _between(workload, inputs, others))
    missing = partial(undeclared, op, inputs)
    behind = partial(special_inputs.behind, op, inputs, exact)
    known = Oracle(exact, scale, flushed=flushed, others=others, between=between, undeclared=missing, behind=behind)
    if op.magnitude is not None or op.roundings is not None:
        return replace(known, single=op.lost(), in_sums=workload.lost_in_sums, half=half)
    whole = all(hasattr(v, "numel") for v in exact.values())  # the caller refuses a result that is no tensor
    if whole and (noise := rounding.spread(workload, inputs, rounding.FEW)) is not None:
        estimate = replace(known, in_sums=dict.fromkeys(exact, 1.0), spread=_smooth(noise, exact))
        return replace(estimate, refined=cache(lambda: _refined(estimate, workload, inputs)))
    if whole and rounding.rounds(op, workload.attributes):
        return known  # here the reference only moves values; another formula for the same may round
    return Oracle(exact, scale, 0.0, signed=not (whole and rounding.compares(workload, inputs)), behind=behind)


def _between(
    workload: Workload, inputs: dict[str, torch.Tensor], others: Callable[[], list[dict[str, torch.Tensor]]]
) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Return the range of each element of the integer outputs over all kinds of honest evaluations. What follows from
    integers alone is exact: if its reference computes in a float format on the way, then in one that suffices."""
    op = workload.op
    names = [n for n, t in op.outputs.items() if not workload.dtype_of(t).is_float]
    rounds = bool(names) and op.roundings != 0 and any(v.is_floating_point() for v in inputs.values())
    found: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}

    def add(results: dict[str, torch.Tensor]) -> None:
        for name in names:
            value = workload.dtype_of(op.outputs[name]).rounded(results[name].double())
            least, most = found.get(name, (value, value))
            found[name] = torch.minimum(least, value), torch.maximum(most, value)

    for sample in rounding.samples(workload, inputs, _SAMPLES, _TIMES) if rounds else ():
        add(sample)
    if found:
        in_range = overflow.in_wide_formats(workload, inputs)
        for other in (*others(), in_range[0] if in_range else baseline(workload, inputs)):
            add(other)
    return found


def _flushed(op: Op, wide: list[Any], attributes: dict[str, Any], exact: dict[str, torch.Tensor]) -> dict[str, Any]:
    """Return how far the oracle moves if subnormal inputs are zero, plus how far it moves if all inputs are off by as
    much as flushing intermediate values may cost, which a later division by a small number magnifies."""
    rng = torch.Generator().manual_seed(0)

    def moved(change: Callable[[torch.Tensor], torch.Tensor]) -> dict[str, torch.Tensor]:
        inputs = [change(v) if v is not None and v.is_floating_point() else v for v in wide]
        results = _per_output(op, exactly(op.reference, inputs, attributes))
        return {n: (results[n].double() - v.double()).abs() for n, v in exact.items()}

    def disturbed(value: torch.Tensor) -> torch.Tensor:
        noise = torch.rand(value.shape, generator=rng, dtype=value.dtype) * 2 - 1
        return (value + noise * 2 * _SMALLEST_NORMAL).abs().copysign(value)  # a square root takes no other sign

    flushed = moved(lambda value: value.masked_fill(value.abs() < _SMALLEST_NORMAL, 0.0))
    samples = [moved(disturbed) for _ in range(_DISTURBED)]
    return {n: v + torch.stack([sample[n] for sample in samples]).amax(0) for n, v in flushed.items()}


def _refined(estimate: Oracle, workload: Workload, inputs: dict[str, torch.Tensor]) -> Oracle:
    noise = rounding.spread(workload, inputs, rounding.MANY, _OTHER_FORMULA, every=True)
    return replace(estimate, spread=_smooth(noise, estimate.exact)) if noise is not None else estimate


def _smooth(spread: dict[str, torch.Tensor], exact: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Raise deviations that are far below the usual ones at results of the same size: from few samples some are
    estimated far too small. Results of other sizes do not count, since a result near zero may be off by far less."""
    smooth = {}
    for name, value in spread.items():
        smooth[name] = value.clone(memory_format=torch.contiguous_format)
        flat = smooth[name].view(-1)
        for _, where in _of_one_size(exact[name].double(), exact[name].isfinite()):
            here = flat[where]
            usual = here.kthvalue(max(1, len(here) // 4)).values
            flat[where] = here.clamp_(min=_LEAST * float(usual))
    return smooth


def baseline(workload: Workload, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Evaluate plain PyTorch in the workload's dtype, on the CPU. If oneDNN fails in one product, as with bf16 on a
    processor without it, PyTorch turns oneDNN off for the rest of the process, and convolutions lose far more, so the
    setting is restored."""
    op = workload.op
    before = torch._C._get_mkldnn_enabled()
    try:
        return _per_output(op, op.reference(*(inputs.get(n) for n in op.inputs), **dict(workload.attributes)))
    finally:
        torch._C._set_mkldnn_enabled(before)


def _per_output(op: Op, results: Any) -> dict[str, torch.Tensor]:
    """Return each output's result. One that is part of another tensor is copied, so that its elements are adjacent."""
    results = results if isinstance(results, tuple) else (results,)
    adjacent = (r.contiguous() if hasattr(r, "contiguous") else r for r in results)
    return dict(zip(op.outputs, adjacent, strict=True))


def all_finite(value: torch.Tensor) -> bool:
    """True if there is no NaN and no Inf. False also if the sum overflows."""
    return math.isfinite(float(value.sum()))


def _or_zero(value: torch.Tensor) -> torch.Tensor:
    """Return the value with zeros for NaN and Inf."""
    return value if all_finite(value) else torch.where(value.isfinite(), value, torch.zeros_like(value))


def ulp(value: torch.Tensor, number: DType) -> torch.Tensor:
    """Return the spacing of `number`'s format at |value|, in float64; below its smallest normal, that of subnormals."""
    field = (value.double().view(torch.int64) & _EXPONENT).clamp_(min=number.min_exponent + 1023 << 52)
    if number.min_exponent - number.fraction < -1022:  # the spacing itself is subnormal in float64
        return torch.exp2((field >> 52).double() - (1023 + number.fraction))
    return field.sub_(number.fraction << 52).view(torch.float64)


def bins(rounded: torch.Tensor, finite: torch.Tensor) -> list[tuple[int, torch.Tensor]]:
    """Return element indices grouped by |oracle| in factors of sixteen, each group large enough for statistics."""
    bins: list[tuple[int, torch.Tensor]] = []
    for label, part in _of_one_size(rounded, finite):
        if bins and (part.numel() < FEW or bins[-1][1].numel() < FEW):
            bins[-1] = (bins[-1][0], torch.cat([bins[-1][1], part]))
        else:
            bins.append((label, part))
    return bins


def _of_one_size(rounded: torch.Tensor, finite: torch.Tensor) -> list[tuple[int, torch.Tensor]]:
    """Return element indices grouped by |oracle| in factors of sixteen, from the largest to zero."""
    first_bits = rounded.flatten().numpy().view(np.int16)[_FIRST_BITS::4]
    group = ((first_bits >> 4 & 0x7FF) - 1022) >> 2  # zero: the last
    where = None if bool(finite.all()) else finite.flatten().nonzero().flatten()
    if where is not None:
        group = group[where.numpy()]
    if not group.size:
        return []
    falling = torch.from_numpy(np.argsort(-group, kind="stable"))  # 16 bits: a radix sort
    where = falling if where is None else where[falling]
    lowest = int(group.min())
    counts = np.bincount(group - lowest)[::-1]
    present = [(lowest + len(counts) - 1 - i, n) for i, n in enumerate(counts.tolist()) if n]
    return [(label, part) for (label, _), part in zip(present, where.split([n for _, n in present]), strict=True)]
