"""Finds sweeps in benches: which axes of an op vary while everything else is fixed."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from assay.report import rows
from assay.report.rows import Row

LEAST = 3
"""The least number of points of a line."""


def along_one(benches: Sequence[Row]) -> list[Row]:
    """Return the rows once per axis along which they were swept, with `sweep` (its name), `axis` and `at`."""
    return [
        row | {"at": size, "axis": axis, "sweep": name}
        for name, (axis,), points in _swept(benches, 1)
        if len({sizes for sizes, _ in points}) >= LEAST
        for (size,), row in points
    ]


def over_two(benches: Sequence[Row]) -> list[Row]:
    """Return the rows once per pair of axes that both vary, with `plane` (its name), `across` and `down`."""
    return [
        row | {"down": down, "across": across, "plane": name, "down_axis": first, "across_axis": second}
        for name, (first, second), points in _swept(benches, 2)
        if len({sizes for sizes, _ in points}) >= LEAST
        and all(len({sizes[at] for sizes, _ in points}) > 1 for at in (0, 1))
        for (down, across), row in points
    ]


def _swept(
    benches: Sequence[Row], count: int
) -> Iterator[tuple[str, tuple[str, ...], list[tuple[tuple[int, ...], Row]]]]:
    """Yield, for each choice of `count` axes and each setting of the others, a name, the axes, and the sizes and row of
    each point."""
    several = len({r["place"] for r in benches}) > 1
    groups: dict[str, list[tuple[dict[str, int], Row]]] = {}
    for row in benches:
        about = [row["op"], row["dtype"], *([row["place"]] if several else [])]
        groups.setdefault(" · ".join(filter(None, about)), []).append((rows.axes(row["workload"]), row))
    for about_group, group in sorted(groups.items(), key=lambda item: item[0]):
        for axes in combinations(dict.fromkeys(name for sizes, _ in group for name in sizes), count):
            fixed: dict[str, list[tuple[tuple[int, ...], Row]]] = {}
            for sizes, row in group:
                if set(axes) <= sizes.keys():
                    rest = ", ".join(f"{k}={v}" for k, v in sizes.items() if k not in axes)
                    fixed.setdefault(rest, []).append((tuple(sizes[axis] for axis in axes), row))
            for rest, points in fixed.items():
                yield f"{about_group} · {' × '.join(axes)}" + (f" ({rest})" if rest else ""), axes, points


def names(swept: Sequence[Row], field: str) -> list[str]:
    """Return the names to choose from: by op, those with the most points first."""
    points = Counter(row[field] for row in swept)
    ops = {row[field]: row["op"] for row in swept}
    return sorted(points, key=lambda n: (ops[n], -points[n], n))
