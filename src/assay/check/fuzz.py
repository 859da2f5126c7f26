"""Chooses workloads within an op's contract, and makes a failing one small."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st

from assay.dtype import DType
from assay.op import Op
from assay.workload import Workload

_SIZES = sorted({0, 1, 2, 3, 5, 7, 11, 13, 31, 61, 97, 127, 251, 509, 1021, 4093, 8191, 65521}
                | {2**k + d for k in range(1, 21) for d in (-1, 0, 1)})  # fmt: skip
"""0, 1, primes, powers of two and their neighbours."""


@dataclass(frozen=True)
class Sizes:
    """How many elements workloads have."""

    usual: int
    long: int
    """Of the edges in which one axis is as long as can be: past 65535 blocks, past what fits a block."""


_JUDGED = tuple(v for v in ("normal", "small", "wide", "offset", "special"))


def explore(op: Op, dtype: DType, count: int, sizes: Sizes, number: int, fails: Callable[[Workload], bool]) -> int:
    """Try up to `count` different workloads: the contract's edges first, then what Hypothesis draws. Stops at the
    first failure. Returns how many were tried."""
    tried: set[str] = set()
    failed = False

    def attempt(workload: Workload) -> None:
        nonlocal failed
        if not failed and len(tried) < count and str(workload) not in tried:
            tried.add(str(workload))
            failed = fails(workload)

    for workload in edges(op, dtype, sizes):
        attempt(workload)

    @seed(number)
    @settings(
        max_examples=4 * count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(workloads(op, dtype, max(256, sizes.usual >> 2)))
    def draw(workload: Workload) -> None:
        attempt(workload)

    if not failed and len(tried) < count:
        draw()
    return len(tried)


@st.composite
def workloads(draw: st.DrawFn, op: Op, dtype: DType, budget: int) -> Workload:
    """Any workload of at most about `budget` elements that the contract allows."""
    room, axes = budget, {}
    for name in draw(st.permutations(list(op.axes))):
        axis = op.axes[name]
        high = min(axis.max, max(axis.min, room))
        axes[name] = draw(_size(axis.min, high))
        room //= max(axes[name], 1)
    attributes = tuple((n, draw(st.sampled_from(a.choices or (a.default,)))) for n, a in op.attributes.items())
    optional = [n for n, t in op.inputs.items() if t.optional]
    may_stride = [n for n, t in op.inputs.items() if t.strided]
    workload = Workload(
        tuple((n, axes[n]) for n in op.axes),
        dtype,
        attributes,
        draw(st.integers(0, 9999)),
        draw(st.sampled_from(_JUDGED)),
        0 if op.aligned else draw(st.sampled_from((0, 0, 1, 3))),
        tuple(n for n in may_stride if draw(st.booleans())),
        tuple(n for n in optional if draw(st.integers(0, 3)) == 3),
        bool(op.aliases) and draw(st.booleans()),
    )
    assume(op.allows(workload) and op.elements(workload) <= 4 * budget + 64)
    return workload


def _size(low: int, high: int) -> st.SearchStrategy[int]:
    special = [s for s in _SIZES if low <= s <= high]
    small = st.integers(low, min(high, low + 40))
    return st.one_of(small, st.sampled_from(special), st.integers(low, high)) if special else small


def edges(op: Op, dtype: DType, sizes: Sizes) -> Iterator[Workload]:
    """The corners worth a look in every contract, most telling first."""
    attributes = tuple((n, a.default) for n, a in op.attributes.items())
    names = list(op.axes)

    def at(sizes: dict[str, int], **rest: object) -> Workload:
        axes = tuple((n, max(op.axes[n].min, min(op.axes[n].max, sizes[n]))) for n in names)
        return Workload(axes, dtype, attributes, **rest)  # type: ignore[arg-type]

    side = _side(op, dtype, attributes, sizes.usual)
    even = dict.fromkeys(names, side)
    odd = dict.fromkeys(names, max(1, side - 1))
    ones = dict.fromkeys(names, 1)
    optional = tuple(n for n, t in op.inputs.items() if t.optional)
    may_stride = tuple(n for n, t in op.inputs.items() if t.strided)
    found = [at(odd), at(ones), at(even, offset=0 if op.aligned else 1), at(odd, values="offset", seed=1)]
    found += [at({**ones, n: sizes.long + 1}) for n in names[:2]]
    found += [
        at(odd, values="special", seed=2),
        at(even, strided=may_stride, without=optional, inplace=bool(op.aliases)),
        at({**odd, names[0]: 0}),
    ]
    found += [at(odd, values="wide", seed=3), at(odd, values="small", seed=4), at(even, values="offset", seed=5)]
    found += [at({**odd, n: 0}) for n in names[1:]] + [at(dict.fromkeys(names, side + 1), strided=may_stride)]
    found += [at(ones, without=(n,)) for n in optional] + [at({**odd, n: 1}) for n in names]
    seen: set[Workload] = set()
    for workload in found:
        if workload not in seen and op.allows(workload) and op.elements(workload) <= 4 * sizes.long + 64:
            seen.add(workload)
            yield workload


def _side(op: Op, dtype: DType, attributes: tuple[tuple[str, float | int], ...], budget: int) -> int:
    """The largest power of two that every axis may be at once."""
    side = 2
    while (
        op.elements(Workload(tuple((n, min(a.max, 2 * side)) for n, a in op.axes.items()), dtype, attributes))
        <= 2 * budget
        and side < 2**30
    ):
        side *= 2
    return side


def shrink(op: Op, workload: Workload, fails: Callable[[Workload], bool], seconds: float = 20.0) -> Workload:
    """The smallest workload nearby that still fails: every part goes back to its simplest value, sizes by bisection.

    By hand, because it starts from a given workload; Hypothesis shrinks only what it drew itself."""
    deadline = time.monotonic() + seconds
    known: dict[Workload, bool] = {}

    def still(candidate: Workload) -> bool:
        if candidate not in known:
            known[candidate] = op.allows(candidate) and time.monotonic() < deadline and fails(candidate)
        return known[candidate]

    changed = True
    while changed and time.monotonic() < deadline:
        before = workload
        for simpler in (
            {"values": "normal"},
            {"offset": 0},
            {"strided": ()},
            {"without": ()},
            {"inplace": False},
            {"seed": 0},
            {"attributes": tuple((n, a.default) for n, a in op.attributes.items())},
        ):
            candidate = workload.replace(**simpler)
            if candidate != workload and still(candidate):
                workload = candidate
        for name, axis in op.axes.items():
            workload = _shorten(workload, name, axis.min, still)
        changed = workload != before
    return workload


def _shorten(workload: Workload, name: str, low: int, still: Callable[[Workload], bool]) -> Workload:
    """The smallest size of one axis that still fails, by bisection, then one by one near the end."""

    def at(size: int) -> Workload:
        return workload.replace(axes=tuple((n, size if n == name else v) for n, v in workload.axes))

    passes, fails = low - 1, dict(workload.axes)[name]
    for quick in (low, low + 1, low + 2):
        if quick < fails and still(at(quick)):
            return at(quick)
    while fails - passes > 1:
        middle = (passes + fails) // 2
        if still(at(middle)):
            fails = middle
        else:
            passes = middle
    return at(fails)
