"""Plans workloads from the op alone: its typical one, neighbours, a huge one, equal axes, ragged sizes, multiples."""

import itertools
import math
from collections.abc import Iterator, Mapping

from assay.coverage import fit
from assay.coverage.factors import SHOWING, Factors
from assay.coverage.row import Planned

_EQUAL = ((37, 5, 3), (64, 16, 8, 4, 2))
"""Lengths that two axes share; of each row, the first that contract and budget allow."""
_DIVISORS = (24, 12, 6, 5, 3)
"""Lengths, none a power of two, of which another axis is a multiple; the first that contract and budget allow."""
_AT_LENGTH = ("constant", "sorted")
_EXPOSING = ("special", "lines", "negative", "alike")
_MASKED = 12
"""Results, of which each twelfth has its special values in another way (`assay.values`)."""
_LONG = 8
"""The budget of a workload with special values at the typical length, as a multiple of a usual one's."""
_RAGGED = 2
"""The most ragged workloads with each of these kinds of values."""
_FOR_ATTRIBUTES = 3
"""Workloads for the values of attributes are at most one in this many."""
_TENSORS = 8
"""The budget of a workload for an attribute is at least this many times SHOWING, within `Effort.most`."""
_DRAWS = 24
"""The most draws of sizes to find a workload with enough elements."""
_ENTIRE = 8
"""The factor by which a workload judged at once must be smaller than one judged in slices."""
_COUNTED = 1 << 24
"""The number of consecutive integers that a float32 holds exactly."""
_COUNTED_IN_16 = 70_001
"""More elements than 16 bits count."""
_INDEXED = 1 << 31
"""The number of indices that a signed 32-bit integer holds."""
PAST = "past 2³¹"


def typical(space: Factors) -> Iterator[Planned]:
    """Yield the op's typical workload, shortened if it is too large, and its neighbours: one size more and one less
    along each axis."""
    usual = {n: a.typical for n, a in space.op.axes.items()}
    first = next(iter(usual), "")
    most = max(space.effort.typical, space.effort.huge if space.op.independent else space.effort.huge // _ENTIRE)
    whole = space.at(fit.shortened(space, usual, first, most), space.plain)
    if whole is not None:
        yield space.planned(whole, "typical", space.plain)
    small = fit.shortened(space, usual, first, space.effort.elements)
    for name, axis in space.op.axes.items():
        for size in (axis.typical + 1, axis.typical - 1):
            near = space.at({**small, name: size if name != first else small[name] + size - axis.typical}, space.plain)
            if near is not None and near.elements <= space.effort.most:
                yield space.planned(near, "near typical", space.plain)
    if space.effort.at_length:
        yield from _beyond_typical(space, fit.shortened(space, usual, first, space.effort.typical), first)


def _beyond_typical(space: Factors, usual: Mapping[str, int], first: str) -> Iterator[Planned]:
    """Yield the typical sizes, all one longer, and with one axis several times as long: a group of blocks, or as many
    as a GPU runs at a time, may be just enough for the typical sizes."""
    row = space.at({name: size + 1 for name, size in usual.items()}, space.plain)
    if row is not None and space.cost(row) <= 2 * space.effort.typical:
        yield space.planned(row, "beyond typical", space.plain)
    name = space.op.independent or first
    few = space.at(usual, space.plain)
    times = space.effort.longer / max(1, space.cost(few)) if few is not None else 0
    for kind in ("normal", "sorted") if times > 1 else ():
        levels = space.plain | {"values": kind}
        sizes = {**usual, name: int(usual[name] * times) | 1}
        longer = space.at(sizes, levels) if kind in space.levels["values"] else None
        if longer is not None and space.cost(longer) <= 2 * space.effort.longer:
            yield space.planned(longer, "beyond typical", levels)


def at_length(space: Factors) -> Iterator[Planned]:
    """Yield the typical sizes with each value of an attribute and with values that repeat or ascend, and each axis
    longer than 16 bits count: a counter overflows only where many elements are alike, a product of a length and an
    attribute only where both are large."""
    usual = {n: a.typical for n, a in space.op.axes.items()}
    sizes = fit.shortened(space, usual, next(iter(usual), ""), space.effort.typical)
    values = [("values", kind) for kind in _AT_LENGTH if kind in space.levels["values"]]
    choices = [(n, level) for n in space.op.attributes for level in space.levels[n] if level != space.plain[n]]
    kept = space.rng.sample(choices, min(len(choices), max(0, space.effort.at_length - len(values))))
    for name, level in [*values, *kept][: space.effort.at_length]:
        row = space.at(sizes, space.plain | {name: level})
        if row is not None and row.elements <= space.effort.typical:
            yield space.planned(row, "at length", space.plain | {name: level})
    few = {n: max(1, axis.min) for n, axis in space.op.axes.items()}
    for name in space.lengths[: space.effort.at_length] if values else ():
        alike = space.plain | dict(values[:1])
        for length, most in (
            (_COUNTED_IN_16, space.effort.most),
            (_counted_by_threads(space, few, name), space.effort.typical),
        ):
            row = space.at(few | {name: length}, alike) if length else None
            if row is not None and space.cost(row) <= most:
                yield space.planned(row, "at length", alike)


def _counted_by_threads(space: Factors, few: Mapping[str, int], name: str) -> int:
    """Return the greatest length of an axis within the typical budget, if the op counts or sums integers: each of a
    GPU's threads may have a counter of its own, of few bits. 0 for any other op."""
    counts = space.dtype.integers is not None or any(tensor.index for tensor in space.op.inputs.values())
    row = space.raw({**few, name: _COUNTED_IN_16}, space.plain)
    return counts * int(_COUNTED_IN_16 * 0.99 * space.effort.typical / max(1, space.cost(row)))


def huge(space: Factors) -> Iterator[Planned]:
    """Yield the typical workload lengthened along the axis of independent results until a tensor has more elements than
    a float32 can count, and until it has more than a signed 32-bit integer can."""
    axis = space.op.independent
    if not axis or not space.effort.huge:
        return
    usual = {n: a.typical for n, a in space.op.axes.items()}
    whole = space.raw(usual, space.plain)
    tensors = [*space.op.inputs.values(), *space.op.outputs.values()]
    each = max((math.prod(whole.shape(t)) for t in tensors if axis in t.shape), default=0) // max(1, usual[axis])
    if not each:
        return
    longer = space.at({**usual, axis: _COUNTED // each + 3}, space.plain)
    if usual[axis] * each <= _COUNTED and longer is not None and space.cost(longer) <= space.effort.huge:
        yield space.planned(longer, "huge", space.plain)
    longest = space.at({**usual, axis: _INDEXED // each + 3}, space.plain) if space.effort.past_32_bits else None
    if longest is not None:
        yield space.planned(longest, PAST, space.plain)


def equal(space: Factors) -> Iterator[Planned]:
    """Yield workloads with two axes of equal length, which code cannot distinguish by their lengths."""
    pairs = list(itertools.combinations(space.lengths, 2))
    for first, second in space.rng.sample(pairs, min(len(pairs), space.effort.related)):
        levels = space.random_levels(space.plain)
        drawn = {n: space.size(n, levels[n]) or 1 for n in space.op.axes}
        beside = fit.shortened(space, drawn, "", space.effort.elements // 4)
        for sizes in _EQUAL:
            rows = (space.at({**beside, first: size, second: size}, space.plain) for size in sizes)
            fits = (row for row in rows if row is not None and space.cost(row) <= space.effort.most)
            for row in itertools.islice(fits, 1):
                yield space.planned(row, "equal axes", space.plain)


def ragged(space: Factors) -> Iterator[Planned]:
    """Yield workloads with all axes at sizes that no block divides, on each kind of values that exposes what a kernel
    uses in place of elements past the end (a zero, or a neighbouring NaN or infinity) or in place of a whole tensor."""
    kinds = [kind for kind in _EXPOSING if kind in space.levels["values"]]
    for turn, kind in itertools.product(range(min(_RAGGED, space.effort.workloads // (3 * len(_EXPOSING)))), kinds):
        levels = space.plain | {name: _of_no_block(space, name, turn) for name in space.op.axes} | {"values": kind}
        row = fit.resolve(space, levels, space.effort.elements, {"values": kind})
        if row is not None:
            yield space.planned(row, "ragged", levels)


def masked(space: Factors) -> Iterator[Planned]:
    """Yield a few results of the typical length whose inputs have special values as a mask leaves them: a loop over the
    blocks of a row then meets one that is masked as a whole, first or last."""
    axis, most = space.op.independent, min(space.effort.most, _LONG * space.effort.elements)
    if not axis or len(space.op.axes) == 1 or "lines" not in space.levels["values"]:
        return
    levels = space.plain | {"values": "lines"}
    sizes = {n: a.typical for n, a in space.op.axes.items()} | {axis: max(_MASKED, space.op.axes[axis].min)}
    others = [n for n in sizes if n != axis]
    while (row := space.raw(sizes, levels)).allowed and space.cost(row) > most:
        longest = max(others, key=lambda n: sizes[n])
        if sizes[longest] <= max(2, space.op.axes[longest].min):
            return
        sizes[longest] = max(2, space.op.axes[longest].min, sizes[longest] // 2)
    if row.allowed:
        yield space.planned(row, "masked", levels)


def _of_no_block(space: Factors, axis: str, turn: int) -> str:
    regimes: list[str] = [r for r in ("odd", "prime") if r in space.sizes[axis]] or list(space.sizes[axis])
    return regimes[turn % len(regimes)]


def attributes(space: Factors) -> Iterator[Planned]:
    """Yield workloads with each value of an attribute on special values: a kernel must not skip 0 · NaN because a
    factor is 0."""
    if "special" not in space.levels["values"]:
        return
    choices = [(n, level) for n in space.op.attributes for level in space.levels[n]]
    most = space.effort.workloads // _FOR_ATTRIBUTES
    elements = max(space.effort.elements, min(space.effort.most, SHOWING * _TENSORS))
    for name, level in space.rng.sample(choices, min(len(choices), most)):
        fixed = {name: level, "values": "special"}
        for turn in range(_DRAWS):
            levels = space.plain | {axis: _of_no_block(space, axis, turn) for axis in space.op.axes} | fixed
            row = fit.resolve(space, levels, elements, fixed)
            if row is not None and space.shows(row):
                yield space.planned(row, "attribute", levels)
                break


def multiples(space: Factors) -> Iterator[Planned]:
    """Yield workloads with one axis five times as long as another, or as the value of an attribute: lengths that divide
    evenly may take a shortcut, and with blocks whose length is no power of two a second block follows."""
    few = {n: max(2, axis.min) for n, axis in space.op.axes.items()}
    pairs = list(itertools.permutations(space.lengths, 2))
    for first, second in space.rng.sample(pairs, min(len(pairs), _multiples(space))):
        rows = (_few(space, {**few, first: 5 * size, second: size}, space.plain) for size in _DIVISORS)
        yield from itertools.islice(filter(None, rows), 1)
    lengths = [
        (axis, name, choice)
        for name, attribute in space.op.attributes.items()
        for choice in attribute.choices or (attribute.default,)
        for axis in space.op.axes
        if type(choice) is int and choice > 2
    ]
    lengths.sort(key=lambda length: length[2] & (length[2] - 1) == 0)  # powers of two last
    rows = (_few(space, {**few, a: 5 * choice}, {**space.plain, name: repr(choice)}) for a, name, choice in lengths)
    yield from itertools.islice(filter(None, rows), _multiples(space))


def _multiples(space: Factors) -> int:
    return space.effort.related // 3


def _few(space: Factors, sizes: Mapping[str, int], levels: Mapping[str, str]) -> Planned | None:
    row = space.at(sizes, levels)
    if row is None or space.cost(row) > space.effort.elements:
        return None
    return space.planned(row, "multiples", levels)
