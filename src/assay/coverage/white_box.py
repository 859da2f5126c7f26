"""Plans workloads around the numbers that the kernel's code compares with: constants, and branches of its launch."""

import itertools
import math
from collections.abc import Iterator

from assay.coverage import fit, regimes
from assay.coverage.constants import Bound, Constants
from assay.coverage.factors import Factors
from assay.coverage.row import Planned
from assay.workload import Workload

_FACTORS = 4
"""The most constants whose products are tried as sizes."""
_COVERED = 1 << 12
"""The least length covered by a limited grid for which a workload is planned; other workloads exceed shorter ones."""
_FAR = 2
"""The most lengths tried of those that only a large workload exceeds."""
_VECTOR = 8
"""Elements of a vector of 16 bytes in a format of 16 bits, which shorter vectors divide too."""
_DRAWS = 12
"""The most draws of sizes to find a workload that shows values near a constant: an empty one does not."""


def around(space: Factors, constants: Constants) -> Iterator[Planned]:
    """Yield workloads at sizes around each constant, beyond the branches of the launch and its limited grids, with two
    axes of equal length, and with values near each constant."""
    yield from itertools.islice(_at_sizes(space, constants), space.effort.constants)
    yield from _beyond(space, constants.bounds)
    yield from _both(space, constants.bounds)
    yield from _many(space, constants.bounds)
    yield from itertools.islice(_more_blocks(space, constants), max(2, space.effort.constants // 4))
    yield from itertools.islice(_equal(space, constants.sizes), max(4, space.effort.constants // 8))
    yield from _groups(space, constants.sizes)
    for value in constants.values[: max(2, space.effort.constants // 5)]:
        drawn = (
            fit.resolve(space, space.random_levels({"values": "normal"}), space.effort.elements) for _ in range(_DRAWS)
        )
        rows = [row for row in drawn if row is not None]
        row = next(filter(space.shows, rows), max(rows, key=space.cost, default=None))
        if row is not None:
            row = row.replace(values=f"near:{value:g}")
            yield Planned(row, f"constant {value:g}", frozenset(), space.cost(row))


def _at_sizes(space: Factors, constants: Constants) -> Iterator[Planned]:
    wanted = [(c, name) for c in constants.sizes for name in space.lengths]
    per = max(3, space.effort.constants // max(1, len(wanted)))
    for c, name in wanted:
        for number, size in enumerate(regimes.around([c], space.op.axes[name])[:per]):
            # The first sizes use plain values: on zeros, ties or NaN a wrong index may change nothing.
            levels, row = _beside(space, name, size, constants, plain=number < 3)
            if row is not None:
                yield space.planned(row, f"constant {c}", levels)


def _beyond(space: Factors, bounds: tuple[Bound, ...]) -> Iterator[Planned]:
    """Yield workloads with one axis just beyond the length at which the launch branches and the others short, on plain
    values: with every layout, with and without optional tensors, in place and not. If that is too expensive, as for
    a grid that covers millions of rows, only the cheapest are tried: the others short, and as long as a vector."""
    switches = [f for f in space.plain if f not in space.op.attributes and f not in ("values", "offset")]
    few = {n: max(2, axis.min) for n, axis in space.op.axes.items()}
    near: list[Bound] = []
    far: list[Bound] = []
    for bound in sorted(bounds, key=lambda b: b.size):
        cheapest = space.cost(space.raw(few | {bound.axis: bound.size + 1}, space.plain))
        (near if cheapest <= space.effort.typical else far).append(bound)
    for bound in near[: max(2, space.effort.constants // 4)]:
        for turn in range(max((len(space.levels[f]) for f in switches), default=1)):
            levels = space.plain | {f: space.levels[f][turn % len(space.levels[f])] for f in switches}
            for size in _past(bound.size)[: 2 if turn == 0 else 1]:
                row = space.at(few | {bound.axis: size}, levels)
                if row is not None and space.cost(row) <= space.effort.typical:
                    yield space.planned(row, f"branch {bound.axis} > {bound.size}", levels)
    for bound in far[-_FAR:]:
        yield from _far_beyond(space, bound)


def _far_beyond(space: Factors, bound: Bound) -> Iterator[Planned]:
    for least in (2, _VECTOR):
        sizes = {n: max(least, axis.min) for n, axis in space.op.axes.items()} | {bound.axis: bound.size + 1}
        row = space.at(sizes, space.plain)
        if row is not None and space.cost(row) <= space.effort.huge:
            yield space.planned(row, f"branch {bound.axis} > {bound.size}", space.plain)


def _past(size: int) -> tuple[int, int]:
    """Return two lengths beyond a branch: one that no block divides, and a power of two, since a launch may have a path
    for lengths that blocks or vectors divide."""
    return size + 1, 1 << size.bit_length()


def _more_blocks(space: Factors, constants: Constants) -> Iterator[Planned]:
    """Yield workloads with one axis just longer than a grid covers that a helper limits to a number of blocks, or with
    more elements in a tensor. Any of the constants may be the length of a block."""
    few = {n: max(2, axis.min) for n, axis in space.op.axes.items()}
    lengths = {limit * c for limit in constants.limits for c in (1, *constants.sizes) if c < limit}
    most = 2 * max(space.effort.typical, space.effort.most)
    for covered in sorted(n for n in lengths if n >= min(_COVERED, space.effort.elements)):
        for name in space.lengths:
            shorter = _exceeding(space, few, name, covered)
            for size, what in ((covered + 1, name), (shorter, "elements"))[: 1 + (shorter < covered)]:
                row = space.at(few | {name: size}, space.plain)
                if row is not None and space.cost(row) <= most:
                    yield space.planned(row, f"more than {covered} {what}", space.plain)


def _exceeding(space: Factors, few: dict[str, int], name: str, count: int) -> int:
    """Return the length of an axis at which a tensor has more than `count` elements."""
    one, two = (space.raw(few | {name: few[name] * n}, space.plain) for n in (1, 2))
    tensors = [*space.op.outputs.values(), *space.op.inputs.values()]
    each = max(math.prod(two.shape(t)) - math.prod(one.shape(t)) for t in tensors)
    return few[name] * (count // max(1, each) + 1)


def _both(space: Factors, bounds: tuple[Bound, ...]) -> Iterator[Planned]:
    """Yield workloads with two axes just beyond the lengths at which the launch branches, a path that one alone does
    not reach. Their cost is at most the typical workload's, on plain values, dense and with strided rows."""
    layouts = {f: "rows" for f in space.levels if f.startswith("layout of")}
    two = [(a, b) for a, b in itertools.combinations(bounds, 2) if a.axis != b.axis]
    combined = 0
    for a, b in two:
        few = {n: max(1, axis.min) for n, axis in space.op.axes.items()}
        odd, even = ({a.axis: m, b.axis: n} for m, n in zip(_past(a.size), _past(b.size), strict=True))
        ways = [(odd, space.plain), (odd, space.plain | layouts), (even, space.plain)]
        for sizes, levels in ways if layouts else ways[::2]:
            row = space.at(few | sizes, levels)
            if row is not None and space.cost(row) <= space.effort.typical:
                combined += 1
                why = f"branch {a.axis} > {a.size}, {b.axis} > {b.size}"
                yield space.planned(row, why, levels)
        if combined >= space.effort.constants // 4:
            return


def _many(space: Factors, bounds: tuple[Bound, ...]) -> Iterator[Planned]:
    """Yield workloads with an axis beyond the longest length at which the launch branches, and as many independent
    results as the typical workload may have: a path for many long rows may begin where the product of both is large."""
    other = space.op.independent
    if not other:
        return
    few = {n: max(1, axis.min) for n, axis in space.op.axes.items()}
    for name in dict.fromkeys(b.axis for b in bounds if b.axis != other):
        for even in (False, True):
            for size in sorted((b.size for b in bounds if b.axis == name), reverse=True):
                one = space.at(few | {name: _past(size)[even]}, space.plain)
                count = space.effort.typical // max(1, space.cost(one)) * few[other] if one is not None else 0
                row = space.at(
                    few | {name: _past(size)[even], other: min(count, space.op.axes[other].max)}, space.plain
                )
                if count > few[other] and row is not None:
                    yield space.planned(row, f"branch {name} > {size}, many {other}", space.plain)
                    break


def _equal(space: Factors, sizes: tuple[int, ...]) -> Iterator[Planned]:
    """Yield workloads with two axes of equal length, a constant or twice that: square tiles may take a shortcut."""
    few = {n: max(2, axis.min) for n, axis in space.op.axes.items()}
    for c in sizes:
        for first, second in itertools.combinations(space.lengths, 2):
            for size in (c, 2 * c):
                row = space.at(few | {first: size, second: size}, space.plain)
                if row is not None and space.cost(row) <= space.effort.most:
                    yield space.planned(row, f"constant {c}", space.plain)


def _groups(space: Factors, constants: tuple[int, ...]) -> Iterator[Planned]:
    """Yield workloads with one axis just longer than the product of two constants and the others longer than one of
    them: a group of blocks is full, another one begins, and there are several blocks along each axis. The largest
    products are as expensive as the typical workload, too much for an interpreter: there may be only so many blocks,
    such as those whose sums one block adds up."""
    few = {n: max(1, axis.min) for n, axis in space.op.axes.items()}
    pairs = itertools.combinations_with_replacement(sorted(constants[:_FACTORS]), 2)
    products = {a * b: max(a, b) for a, b in pairs if a * b not in constants}
    near: list[Planned] = []
    far: list[Planned] = []
    for product, block in sorted(products.items()):
        several = {n: min(axis.max, max(axis.min, block + 1)) for n, axis in space.op.axes.items()}
        for name in space.lengths:
            rows = [space.at(others | {name: product + 1}, space.plain) for others in (several, few)]
            fits = [row for row in rows if row is not None and space.cost(row) <= space.effort.most]
            if fits:
                near.append(space.planned(fits[0], f"constant {product}", space.plain))
            elif space.effort.longer and (row := rows[-1]) is not None and space.cost(row) <= space.effort.typical:
                far.append(space.planned(row, f"constant {product}", space.plain))
    yield from near[: space.effort.constants // 3]
    yield from far[-_FAR:]


def _beside(
    space: Factors, name: str, size: int, constants: Constants, plain: bool
) -> tuple[dict[str, str], Workload | None]:
    levels: dict[str, str] = {}
    for attempt in range(8):
        levels = space.random_levels(space.plain if plain or space.rng.random() < 0.5 else {})
        chosen = {name: size}
        for other in space.op.axes:
            if other != name:
                near = regimes.around(constants.sizes[:4], space.op.axes[other])
                near = [n for n in near if n <= space.effort.elements]
                small = space.sizes[other].get("few") or next(iter(space.sizes[other].values()))
                if attempt > 5:
                    chosen[other] = max(1, space.op.axes[other].min)
                elif attempt > 3 or other not in space.lengths:
                    chosen[other] = small[0]
                elif near and space.rng.random() < 0.5:
                    chosen[other] = space.rng.choice(near)
                else:
                    chosen[other] = space.rng.choice(space.sizes[other][levels[other]])
                if chosen[other] == 0:
                    chosen[other] = small[0]
        row = space.at(chosen, levels)
        if row is not None and row.elements <= space.effort.most:
            return levels, row
    return levels, None
