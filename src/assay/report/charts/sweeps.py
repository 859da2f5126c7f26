"""What was swept: which axes of an op vary while everything else is held."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from assay.report import rows
from assay.report.rows import Row

LEAST = 3
"""Points that make a line."""


def along_one(found: Sequence[Row]) -> list[Row]:
    """Rows once per axis they were swept along, with `sweep` (its name), `axis` and `at`."""
    swept = []
    for about, group in _groups(found):
        sizes = [rows.axes(r["workload"]) for r in group]
        for axis in dict.fromkeys(name for s in sizes for name in s):
            fixed: dict[str, list[Row]] = {}
            for row, size in zip(group, sizes, strict=True):
                if axis in size:
                    rest = ", ".join(f"{k}={v}" for k, v in size.items() if k != axis)
                    fixed.setdefault(rest, []).append(row | {"at": size[axis], "axis": axis})
            for rest, line in fixed.items():
                if len({r["at"] for r in line}) >= LEAST:
                    name = f"{about} · {axis}" + (f" ({rest})" if rest else "")
                    swept += [r | {"sweep": name} for r in line]
    return swept


def over_two(found: Sequence[Row]) -> list[Row]:
    """Rows once per pair of axes that both vary, with `plane` (its name), `across` and `down`."""
    swept = []
    for about, group in _groups(found):
        sizes = [rows.axes(r["workload"]) for r in group]
        for first, second in combinations(dict.fromkeys(name for s in sizes for name in s), 2):
            fixed: dict[str, list[Row]] = {}
            for row, size in zip(group, sizes, strict=True):
                if first in size and second in size:
                    rest = ", ".join(f"{k}={v}" for k, v in size.items() if k not in (first, second))
                    fixed.setdefault(rest, []).append(row | {"down": size[first], "across": size[second]})
            for rest, plane in fixed.items():
                cells = {(r["down"], r["across"]) for r in plane}
                if len(cells) >= LEAST and len({d for d, _ in cells}) > 1 and len({a for _, a in cells}) > 1:
                    name = f"{about} · {first} × {second}" + (f" ({rest})" if rest else "")
                    swept += [r | {"plane": name, "down_axis": first, "across_axis": second} for r in plane]
    return swept


def _groups(found: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    several = len({r["place"] for r in found}) > 1
    groups: dict[str, list[Row]] = {}
    for row in found:
        about = [row["op"], row["dtype"], *([row["place"]] if several else [])]
        groups.setdefault(" · ".join(filter(None, about)), []).append(row)
    yield from sorted(groups.items())


def names(swept: Sequence[Row], field: str) -> list[str]:
    """To pick from: by op, the ones with most points first."""
    points: dict[str, int] = {}
    ops = {row[field]: row["op"] for row in swept}
    for row in swept:
        points[row[field]] = points.get(row[field], 0) + 1
    return sorted(points, key=lambda n: (ops[n], -points[n], n))
