"""Makes workloads small enough: sizes are reduced until the elements fit the budget."""

import math
from collections.abc import Mapping

from assay.coverage.factors import Factors
from assay.workload import Workload


def shortened(space: Factors, sizes: Mapping[str, int], leading: str, most: int) -> dict[str, int]:
    """Return the sizes, halved until they fit: first along the axis of independent results, then the leading axis, then
    the longest."""
    now = dict(sizes)
    order = [n for n in (space.op.independent, leading, *sorted(now, key=lambda n: -now[n])) if n]
    for name in dict.fromkeys(order):
        while now[name] > max(3, space.op.axes[name].min) and _weight(space, now) > most:
            now[name] = max(3, space.op.axes[name].min, now[name] // 2)
    return now


def resolve(
    space: Factors, levels: dict[str, str], most: int, fixed: Mapping[str, str] | None = None
) -> Workload | None:
    """Return a workload of these levels whose cost is at most `most`, or `Effort.most` if an axis is long; None if
    there is none. Levels that are not fixed may change, in place."""
    fixed = fixed or {}
    long = any(levels[n] in ("long", "model") for n in space.op.axes)
    most = space.effort.most if long else most
    names = list(space.op.axes)
    for attempt in range(6):
        chosen = {n: space.size(n, levels[n]) for n in names}
        row = space.at(chosen, levels)
        steps = 0
        while row is None or space.cost(row) > most:
            shorter = [n for n in names if chosen[n] > space.sizes[n][levels[n]][0]]
            if not shorter or steps > 60:
                break
            steps += 1
            if row is None:
                name, goal = space.rng.choice(shorter), math.inf
            else:  # all reducible axes are reduced together
                name = max(shorter, key=lambda n: chosen[n])
                goal = chosen[name] * (most / space.cost(row)) ** (1 / len(shorter))
            chosen[name] = _smaller(space.sizes[name][levels[name]], chosen[name], goal)
            row = space.at(chosen, levels)
        if row is not None and space.cost(row) <= most:
            return row
        free = [n for n in names if n not in fixed]
        if not free:
            break
        name = max(free, key=lambda n: chosen[n]) if row is not None else space.rng.choice(free)
        usual: list[str] = [r for r in ("few", "odd", "1") if r in space.sizes[name]] or list(space.sizes[name])
        levels[name] = usual[min(attempt // 2, len(usual) - 1)]
        for factor in space.plain:
            if factor not in fixed and row is None:
                levels[factor] = space.plain[factor]
    return None


def _weight(space: Factors, sizes: Mapping[str, int]) -> int:
    workload = space.raw(sizes, space.plain)
    return space.cost(workload) if workload.allowed else 1 << 62


def _smaller(sizes: tuple[int, ...], size: int, goal: float) -> int:
    """Return the largest of the ascending sizes that is below `size` and not above the goal; else the smallest."""
    return next((n for n in reversed(sizes) if n < size and n <= goal), sizes[0])
