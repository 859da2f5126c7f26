"""Plans workloads that repeat earlier sizes with something else changed, after all others and in the same process.

A kernel may keep state between calls: specialised code, a plan, a buffer that has grown. Workloads tried in the order
of their cost never meet the state that a larger one left, rarely repeat sizes with another attribute, and are never
preceded by a call in another dtype."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from assay.coverage.factors import Factors
from assay.coverage.row import Planned
from assay.dtype import DType
from assay.workload import Workload

AGAIN = "again"
_TELLING = 16
"""The least number of elements of a workload that is worth repeating."""
_REPEATED = 1 / 3
"""The share of these workloads that differ from earlier ones only in their values."""


def revisits(space: Factors, rows: Sequence[Planned], dtypes: Iterable[DType] = ()) -> list[Planned]:
    """Return at most `Effort.again` workloads, from the largest down to the smallest, and one for each other dtype.
    `rows` are all other workloads, cheap ones first; `dtypes` are those that the kernel takes."""
    most = space.effort.again
    known = [row for row in rows if row.workload.elements >= _TELLING and row.cost <= space.effort.elements]
    if not most or not known:
        return []
    count = min(len(known), max(1, round(most * _REPEATED)))
    repeated = [known[i * len(known) // count].workload for i in range(count)]
    by_factor: dict[str, list[Workload]] = {}
    for row in space.rng.sample(known, len(known)):
        for name, other in _others(space, row.workload):
            by_factor.setdefault(name, []).append(other)
    in_turn = itertools.chain.from_iterable(itertools.zip_longest(*by_factor.values()))
    changed = itertools.islice(filter(None, in_turn), most - count)
    planned = [Planned(_drawn_anew(space, one), AGAIN, cost=space.cost(one)) for one in (*repeated, *changed)]
    planned.sort(key=lambda row: -row.cost)
    return planned + list(_after_other_dtypes(space, known, dtypes))


def _others(space: Factors, workload: Workload) -> Iterator[tuple[str, Workload]]:
    """Yield what can change, one attribute or the presence of one optional tensor, with the changed workload."""
    for place, (name, value) in enumerate(workload.attributes):
        choices = [c for c in space.op.attributes[name].choices or () if c != value]
        if choices:
            attributes = list(workload.attributes)
            attributes[place] = name, space.rng.choice(choices)
            other = replace(workload, attributes=tuple(attributes))
            if other.allowed and other.axes == workload.axes:
                yield name, other
    for name in (n for n, t in space.op.inputs.items() if t.optional):
        left = (
            tuple(n for n in workload.without if n != name) if name in workload.without else (*workload.without, name)
        )
        other = replace(workload, without=left, strided=tuple(n for n in workload.strided if n not in left))
        other = replace(other, scattered=tuple(n for n in workload.scattered if n not in left))
        if other.allowed:
            yield name, other


def _after_other_dtypes(space: Factors, known: Sequence[Planned], dtypes: Iterable[DType]) -> Iterator[Planned]:
    """Yield a workload of new sizes for each other dtype; the kernel is called in that dtype first."""
    seen = {row.workload.axes for row in known}
    for other in (d for d in dtypes if d != space.dtype):
        for row in space.rng.sample(known, len(known)):
            name, size = row.workload.axes[-1]
            longer = replace(row.workload, axes=(*row.workload.axes[:-1], (name, size + 1)))
            if longer.allowed and longer.axes not in seen:
                seen.add(longer.axes)
                drawn = _drawn_anew(space, longer)
                yield Planned(drawn, AGAIN, cost=space.cost(longer), before=replace(drawn, dtype=other))
                break


def _drawn_anew(space: Factors, workload: Workload) -> Workload:
    return replace(workload, seed=10_000 + space.rng.randrange(10_000))
