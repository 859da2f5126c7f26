"""Plans workloads that visit every pair of levels of two factors, as far as the contract and the budget allow."""

import itertools
from collections.abc import Iterator, Mapping

from assay.coverage import fit
from assay.coverage.factors import Factors
from assay.coverage.row import Level, Pair, Planned, ordered

_TRIES = 3
"""Attempts before a pair counts as impossible to visit; eight times as many if the rows were too small to show it."""


def covering(space: Factors, before: list[Planned]) -> Iterator[Planned]:
    """Yield rows that visit new levels first, then new pairs, each row as many as it can."""
    left = space.all_pairs - {p for row in before for p in row.pairs}
    seen = {level for row in before for pair in row.pairs for level in pair}
    unseen = {level for pair in left for level in pair} - seen
    tries: dict[Pair | Level, int] = {}
    made = 0
    shuffled = sorted(left)
    space.rng.shuffle(shuffled)
    queue = iter(itertools.cycle(shuffled)) if shuffled else iter(())
    while left and made < space.effort.workloads:
        new = next((p for p in shuffled if p in left and not unseen.isdisjoint(p)), None) if unseen else None
        pair = new or next(p for p in queue if p in left)
        tries[pair] = tries.get(pair, 0) + 1
        levels = _grown(space, dict(pair), left, unseen)
        row = fit.resolve(space, levels, space.effort.elements, dict(pair))
        visits = space.visits(row, levels) if row else frozenset()
        if row is None or pair not in visits:
            if row is not None and space.unseen(row, pair) and tries[pair] < 8 * _TRIES:
                continue
            if tries[pair] >= _TRIES:
                left.discard(pair)
                why = _why(space, dict(pair)) if row is None else "one has no effect beside the other"
                space.impossible.setdefault(why, []).append(pair)
            for level in unseen.intersection(pair):
                tries[level] = tries.get(level, 0) + 1
                if tries[level] >= 4 * _TRIES:
                    unseen.discard(level)
            continue
        left -= visits
        unseen -= {level for visited in visits for level in visited}
        made += 1
        yield Planned(row, "pairs", visits, space.cost(row))


def _grown(space: Factors, levels: dict[str, str], left: set[Pair], unseen: set[Level]) -> dict[str, str]:
    """Add every other factor to `levels`, at a level that is new or that visits the most new pairs. Sizes that cannot
    show the pair are avoided: an empty tensor, a single row for strided rows, few elements for a kind of values."""
    order = [f for f in space.levels if f not in levels]
    space.rng.shuffle(order)
    apart = any(f.startswith("layout of") and level != "dense" for f, level in levels.items())
    useless = {"0", *(("1",) if apart else ()), *(("1", "few") if space.needs_many(levels.items()) else ())}
    for factor in order:
        best, most = "", -1.0
        possible = [level for level in space.levels[factor] if factor not in space.sizes or level not in useless]
        for level in possible or space.levels[factor]:
            this = (factor, level)
            new = sum(ordered(this, other) in left for other in levels.items()) + space.rng.random()
            new += len(space.levels) * (this in unseen)
            if new > most:
                best, most = level, new
        levels[factor] = best
    return levels


def _why(space: Factors, fixed: Mapping[str, str]) -> str:
    """Return why no workload has these two levels: too many elements, or not in the contract."""
    sizes = {n: space.sizes[n][fixed[n]][0] if n in fixed else max(1, a.min) for n, a in space.op.axes.items()}
    row = space.raw(sizes, space.plain)
    large = row.allowed and space.cost(row) > space.effort.elements
    return f"more than {space.effort.most} elements" if large else "outside the contract"
