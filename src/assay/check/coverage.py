"""Which workloads are tried: coverage by construction.

Everything in which workloads of an op differ is a factor: each axis (by its regimes of sizes), each attribute, the kind
of values, alignment, strides, optional inputs, in-place. A plan visits every pair of levels of two factors as far as
the contract and the element budget allow; it starts from the op's typical workload and its neighbours, and adds sizes
and values around the constants in the kernel's own code. What was not visited is counted with the reason."""

from __future__ import annotations

import itertools
import math
import random
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from assay.check import regimes
from assay.check.constants import Bound, Constants
from assay.dtype import DType
from assay.op import Op
from assay.workload import VALUES, Workload

Level = tuple[str, str]
"""(factor, level), e.g. ("rows", "2ᵏ+1") or ("values", "wide")."""
Pair = tuple[Level, Level]
_ONLY_REPORTED = ("beyond",)
_EQUAL = (37, 16, 5, 3, 2)
"""Lengths that two axes have at the same time, the first that the contract and the budget allow."""
_PAIRS = 24
"""Of axes, at most."""
_DIVISORS = (24, 12, 6, 5, 3)
"""Lengths, no powers of two, of which another axis is a multiple: the first that the contract and the budget allow."""
_MULTIPLES = 8
"""Ordered pairs of axes, at most."""
_PROBLEM, _PROBLEMS = 128, 32
"""Several axes that lead every tensor (attention's batch and heads) count problems, each of which tends to be a
program: the elements that one counts for besides its own, and how long such an axis is at most."""
_TRIES = 3  # rows built for a pair before it counts as one that cannot be visited


@dataclass(frozen=True)
class Effort:
    """How much is tried, by where the kernel runs."""

    workloads: int
    """Besides those of the typical workload and of the kernel's constants."""
    elements: int
    """Of a usual workload, over all tensors."""
    most: int
    """Of a workload with a long axis, or around a constant."""
    typical: int
    """Above so many elements the typical workload's leading axis is shortened."""
    constants: int
    """Workloads around the kernel's constants."""

    def times(self, factor: int) -> Effort:
        more = (n * factor for n in (self.most, self.typical, self.constants))
        return Effort(self.workloads * factor, self.elements, *more)


@dataclass(frozen=True)
class Planned:
    workload: Workload
    why: str
    """`typical`, `near typical`, `equal axes`, `multiples`, `pairs`, `constant 768` or `branch rows > 128, cols > 9`"""
    pairs: frozenset[Pair] = frozenset()
    """That it visits. Strides of a single row, and anything but its size in an empty tensor, have no effect and are not
    visited."""
    cost: int = 0
    """Elements of all tensors, a sixteenth of the operations, and more for every problem of a batch."""


@dataclass
class Plan:
    """Workloads in the order in which they are tried, cheap ones first, and what they leave out."""

    rows: list[Planned]
    pairs: int
    """Pairs of levels that the contract has."""
    impossible: dict[str, list[Pair]] = field(default_factory=dict)
    """Pairs that no workload can visit, by reason."""
    constants: Constants = field(default_factory=Constants)

    def visited(self, tried: Iterable[Planned]) -> int:
        """How many pairs these workloads visit."""
        return len({pair for row in tried for pair in row.pairs})


def plan(
    op: Op,
    dtype: DType,
    effort: Effort,
    seed: int = 0,
    constants: Constants | None = None,
    sizes: Iterable[int] = (),
    omittable: Iterable[str] = (),
) -> Plan:
    """The workloads for one kernel and dtype. `sizes` are axis lengths to try besides all others; `omittable` outputs
    may be left out of a call."""
    known = constants or Constants()
    known = replace(known, sizes=(*dict.fromkeys((*sizes, *known.sizes)),))
    space = _Space(op, dtype, effort, random.Random(zlib.crc32(f"{op.name}/{dtype}/{seed}".encode())), tuple(omittable))
    rows = [*space.typical(), *space.equal()]
    rows += space.around(known)
    rows += space.covering(rows.copy())
    rows += space.multiples()
    distinct = {str(row.workload): row for row in reversed(rows)}
    ordered = sorted(distinct.values(), key=space.patience)
    return Plan(ordered, len(space.all_pairs), space.impossible, known)


def _pair(a: Level, b: Level) -> Pair:
    return (a, b) if a <= b else (b, a)


class _Space:
    """The factors of one op in one dtype."""

    def __init__(self, op: Op, dtype: DType, effort: Effort, rng: random.Random, omittable: tuple[str, ...]) -> None:
        self.op, self.dtype, self.effort, self.rng = op, dtype, effort, rng
        tensors = {**op.inputs, **op.outputs}
        leading, *others = {t.shape[:-2] for t in tensors.values()}
        self.problems = leading if len(leading) > 1 and not others else ()
        self.lengths = [name for name in op.axes if name not in self.problems]
        self.sizes = {n: regimes.of(a, effort.most if n in self.lengths else _PROBLEMS) for n, a in op.axes.items()}
        self.factors: dict[str, list[str]] = {name: list(found) for name, found in self.sizes.items()}
        for name, attribute in op.attributes.items():
            self.factors[name] = [repr(c) for c in attribute.choices or (attribute.default,)]
        self.factors["values"] = kinds(op, dtype)
        self.factors["offset"] = ["0"] if op.aligned else ["0", "1", "3"]
        for name, tensor in tensors.items():
            if tensor.strided:
                self.factors[f"layout of {name}"] = ["dense", "rows", *(["all"] if tensor.strided == "all" else [])]
        for name, tensor in op.inputs.items():
            if tensor.optional:
                self.factors[f"{name} given"] = ["yes", "no"]
        for name in omittable:
            self.factors[f"{name} asked for"] = ["yes", "no"]
        if op.aliases:
            self.factors["in place"] = ["no", "yes"]
        self.all_pairs: set[Pair] = {
            _pair((f, a), (g, b))
            for f, g in itertools.combinations(self.factors, 2)
            for a in self.factors[f]
            for b in self.factors[g]
        }
        self.impossible: dict[str, list[Pair]] = {}
        self._plain = {name: levels[0] for name, levels in self.factors.items() if name not in self.sizes}
        for name, attribute in op.attributes.items():
            self._plain[name] = repr(attribute.default)

    def typical(self) -> Iterator[Planned]:
        """The op's typical workload, shortened along its leading axis where it must be, and its neighbours: one size
        more and one less along each axis."""
        usual = {n: a.typical for n, a in self.op.axes.items()}
        first = next(iter(usual), "")
        whole = self._at(self._shortened(usual, first, self.effort.typical), self._plain)
        if whole is not None:
            yield Planned(whole, "typical", self._visits(whole, self._plain), self._cost(whole))
        small = self._shortened(usual, first, self.effort.elements)
        for name, axis in self.op.axes.items():
            for size in (axis.typical + 1, axis.typical - 1):
                size = size if name != first else small[name] + size - axis.typical
                near = self._at({**small, name: size}, self._plain)
                if near is not None and self.op.elements(near) <= self.effort.most:
                    yield Planned(near, "near typical", self._visits(near, self._plain), self._cost(near))

    def equal(self) -> Iterator[Planned]:
        """Every two axes of the same length: what tells them apart by their lengths cannot."""
        pairs = list(itertools.combinations(self.lengths, 2))
        for first, second in self.rng.sample(pairs, min(len(pairs), _PAIRS)):
            levels = self._random_levels(self._plain)
            drawn = {n: self.rng.choice(self.sizes[n][levels[n]]) or 1 for n in self.op.axes}
            beside = self._shortened(drawn, "", self.effort.elements // 4)
            for size in _EQUAL:
                row = self._at({**beside, first: size, second: size}, self._plain)
                if row is not None and self._cost(row) <= self.effort.most:
                    yield Planned(row, "equal axes", self._visits(row, self._plain), self._cost(row))
                    break

    def multiples(self) -> Iterator[Planned]:
        """One axis five times as long as another, or as an attribute says: a shortcut for what divides evenly is taken
        there, and blocks that are no powers of two go on to a second one."""
        few = {n: max(2, axis.min) for n, axis in self.op.axes.items()}
        pairs = list(itertools.permutations(self.lengths, 2))
        for first, second in self.rng.sample(pairs, min(len(pairs), _MULTIPLES)):
            rows = (self._few({**few, first: 5 * size, second: size}, self._plain) for size in _DIVISORS)
            yield from itertools.islice(filter(None, rows), 1)
        lengths = [
            (axis, name, choice)
            for name, attribute in self.op.attributes.items()
            for choice in attribute.choices or (attribute.default,)
            for axis in self.op.axes
            if type(choice) is int and choice > 2
        ]
        lengths.sort(key=lambda length: length[2] & (length[2] - 1) == 0)  # powers of two last
        rows = (self._few({**few, a: 5 * choice}, {**self._plain, name: repr(choice)}) for a, name, choice in lengths)
        yield from itertools.islice(filter(None, rows), _MULTIPLES)

    def _few(self, sizes: Mapping[str, int], levels: Mapping[str, str]) -> Planned | None:
        row = self._at(sizes, levels)
        if row is None or self._cost(row) > self.effort.elements:
            return None
        return Planned(row, "multiples", self._visits(row, levels), self._cost(row))

    def _shortened(self, sizes: Mapping[str, int], leading: str, most: int) -> dict[str, int]:
        """The same sizes with the axis of independent results, else the leading one, then the others, cut short."""
        now = dict(sizes)
        order = [n for n in (self.op.independent, leading, *sorted(now, key=lambda n: -now[n])) if n]
        for name in dict.fromkeys(order):
            while now[name] > max(3, self.op.axes[name].min) and self._weight(now) > most:
                now[name] = max(3, self.op.axes[name].min, now[name] // 2)
        return now

    def _weight(self, sizes: Mapping[str, int]) -> int:
        workload = self._raw(sizes, self._plain)
        return self._cost(workload) if self.op.allows(workload) else 1 << 62

    def patience(self, row: Planned) -> tuple[int, int, int]:
        """What sorts rows, cheap ones first. Of about the same cost, those with few independent results come first:
        each tends to be a block, which an interpreter runs one after another."""
        return row.cost.bit_length(), dict(row.workload.axes).get(self.op.independent or "", 0), row.cost

    def around(self, constants: Constants) -> Iterator[Planned]:
        """Each axis at the sizes around each constant, beside other axes of any regime, or around constants too."""
        yield from itertools.islice(self._at_sizes(constants), self.effort.constants)
        yield from self._both(constants.bounds)
        for value in constants.values[: max(2, self.effort.constants // 8)]:
            levels = self._random_levels({"values": "normal"})
            row = self._resolve(levels, self.effort.elements)
            if row is not None:
                row = row.replace(values=f"near:{value:g}")
                yield Planned(row, f"constant {value:g}", frozenset(), self._cost(row))

    def _at_sizes(self, constants: Constants) -> Iterator[Planned]:
        wanted = [(c, name) for c in constants.sizes for name in self.lengths]
        per = max(2, self.effort.constants // max(1, len(wanted)))
        for c, name in wanted:
            for number, size in enumerate(regimes.around([c], self.op.axes[name])[:per]):
                # The first ones on plain values: on zeros, ties or NaN a wrong index may change nothing.
                levels, row = self._beside(name, size, constants, plain=number < 2)
                if row is not None:
                    yield Planned(row, f"constant {c}", self._visits(row, levels), self._cost(row))

    def _both(self, bounds: tuple[Bound, ...]) -> Iterator[Planned]:
        """Two axes beyond the lengths at which the kernel goes another way, at once: each alone does not lead there. As
        large as the typical workload, on plain values, dense and with rows that lie apart."""
        layouts = {f: "rows" for f in self.factors if f.startswith("layout of")}
        found = [(a, b) for a, b in itertools.combinations(bounds, 2) if a.axis != b.axis]
        combined = 0
        for a, b in found:
            sizes = {n: max(1, axis.min) for n, axis in self.op.axes.items()} | {a.axis: a.size + 1, b.axis: b.size + 1}
            for levels in (self._plain, self._plain | layouts) if layouts else (self._plain,):
                row = self._at(sizes, levels)
                if row is not None and self._cost(row) <= self.effort.typical:
                    combined += 1
                    why = f"branch {a.axis} > {a.size}, {b.axis} > {b.size}"
                    yield Planned(row, why, self._visits(row, levels), self._cost(row))
            if combined >= self.effort.constants // 4:
                return

    def _beside(
        self, name: str, size: int, constants: Constants, plain: bool
    ) -> tuple[dict[str, str], Workload | None]:
        levels: dict[str, str] = {}
        for attempt in range(8):
            levels = self._random_levels(self._plain if plain or self.rng.random() < 0.5 else {})
            chosen = {name: size}
            for other in self.op.axes:
                if other != name:
                    near = regimes.around(constants.sizes[:4], self.op.axes[other])
                    near = [n for n in near if n <= self.effort.elements]
                    small = self.sizes[other].get("few") or next(iter(self.sizes[other].values()))
                    if attempt > 5:
                        chosen[other] = max(1, self.op.axes[other].min)
                    elif attempt > 3 or other in self.problems:
                        chosen[other] = small[0]
                    elif near and self.rng.random() < 0.5:
                        chosen[other] = self.rng.choice(near)
                    else:
                        chosen[other] = self.rng.choice(self.sizes[other][levels[other]])
                    if chosen[other] == 0:
                        chosen[other] = small[0]
            row = self._at(chosen, levels)
            if row is not None and self.op.elements(row) <= self.effort.most:
                return levels, row
        return levels, None

    def covering(self, before: list[Planned]) -> Iterator[Planned]:
        """Rows that visit levels not yet visited, then pairs, the most new ones first."""
        left = self.all_pairs - {p for row in before for p in row.pairs}
        seen = {level for row in before for pair in row.pairs for level in pair}
        unseen = {level for pair in left for level in pair} - seen
        tries: dict[Pair | Level, int] = {}
        made = 0
        ordered = sorted(left)
        self.rng.shuffle(ordered)
        queue = iter(itertools.cycle(ordered)) if ordered else iter(())
        while left and made < self.effort.workloads:
            new = next((p for p in ordered if p in left and not unseen.isdisjoint(p)), None) if unseen else None
            pair = new or next(p for p in queue if p in left)
            tries[pair] = tries.get(pair, 0) + 1
            levels = self._grown(dict(pair), left, unseen)
            row = self._resolve(levels, self.effort.elements, dict(pair))
            visits = self._visits(row, levels) if row else frozenset()
            if row is None or pair not in visits:
                if tries[pair] >= _TRIES:
                    left.discard(pair)
                    why = self._why(dict(pair)) if row is None else "one has no effect beside the other"
                    self.impossible.setdefault(why, []).append(pair)
                for level in unseen.intersection(pair):
                    tries[level] = tries.get(level, 0) + 1
                    if tries[level] >= 4 * _TRIES:
                        unseen.discard(level)
                continue
            left -= visits
            unseen -= {level for visited in visits for level in visited}
            made += 1
            yield Planned(row, "pairs", visits, self._cost(row))

    def _grown(self, levels: dict[str, str], left: set[Pair], unseen: set[Level]) -> dict[str, str]:
        """Every other factor at a level that is new, or at the one that visits the most new pairs. An empty tensor
        shows nothing of the pair, nor does a single row show how rows lie apart."""
        order = [f for f in self.factors if f not in levels]
        self.rng.shuffle(order)
        apart = any(f.startswith("layout of") and level != "dense" for f, level in levels.items())
        useless = ("0", "1") if apart else ("0",)
        for factor in order:
            best, most = "", -1.0
            possible = [level for level in self.factors[factor] if factor not in self.sizes or level not in useless]
            for level in possible or self.factors[factor]:
                mine = (factor, level)
                new = sum(_pair(mine, other) in left for other in levels.items()) + self.rng.random()
                new += len(self.factors) * (mine in unseen)
                if new > most:
                    best, most = level, new
            levels[factor] = best
        return levels

    def _random_levels(self, fixed: Mapping[str, str]) -> dict[str, str]:
        return {f: fixed.get(f) or self.rng.choice(levels) for f, levels in self.factors.items()}

    def _resolve(self, levels: dict[str, str], most: int, fixed: Mapping[str, str] | None = None) -> Workload | None:
        """A workload of these levels with at most so many elements; levels that are not fixed may give way."""
        fixed = fixed or {}
        long = any(levels[n] in ("long", "model") for n in self.op.axes)
        most = self.effort.most if long else most
        names = list(self.op.axes)
        for attempt in range(6):
            chosen = {n: self.rng.choice(self.sizes[n][levels[n]]) for n in names}
            row = self._at(chosen, levels)
            steps = 0
            while row is None or self._cost(row) > most:
                shorter = [n for n in names if self._smaller(n, levels[n], chosen[n]) is not None]
                shorter.sort(key=lambda n: -chosen[n])
                if not shorter or steps > 60:
                    break
                steps += 1
                name = shorter[0] if row is not None else self.rng.choice(shorter)
                chosen[name] = self._smaller(name, levels[name], chosen[name]) or chosen[name]
                row = self._at(chosen, levels)
            if row is not None and self._cost(row) <= most:
                return row
            free = [n for n in names if n not in fixed]
            if not free:
                break
            name = max(free, key=lambda n: chosen[n]) if row is not None else self.rng.choice(free)
            usual: list[str] = [r for r in ("few", "odd", "1") if r in self.sizes[name]] or list(self.sizes[name])
            levels[name] = usual[min(attempt // 2, len(usual) - 1)]
            for factor in self._plain:
                if factor not in fixed and row is None:
                    levels[factor] = self._plain[factor]
        return None

    def _smaller(self, name: str, level: str, size: int) -> int | None:
        shorter = [n for n in self.sizes[name][level] if n < size]
        return shorter[-1] if shorter else None

    def _why(self, fixed: Mapping[str, str]) -> str:
        """Why no workload has these two levels: too many elements, or not in the contract."""
        sizes = {n: self.sizes[n][fixed[n]][0] if n in fixed else max(1, a.min) for n, a in self.op.axes.items()}
        row = self._raw(sizes, self._plain)
        large = self.op.allows(row) and self._cost(row) > self.effort.elements
        return f"more than {self.effort.most} elements" if large else "outside the contract"

    def _raw(self, sizes: Mapping[str, int], levels: Mapping[str, str]) -> Workload:
        attributes = tuple(
            (n, next((c for c in (a.choices or (a.default,)) if repr(c) == levels.get(n)), a.default))
            for n, a in self.op.attributes.items()
        )
        tensors = [*self.op.inputs, *self.op.outputs]
        return Workload(
            tuple((n, sizes[n]) for n in self.op.axes),
            self.dtype,
            attributes,
            self.rng.randrange(10_000),
            levels.get("values", "normal"),
            int(levels.get("offset", "0")),
            tuple(n for n in tensors if levels.get(f"layout of {n}") == "rows"),
            tuple(n for n in tensors if "no" in (levels.get(f"{n} given"), levels.get(f"{n} asked for"))),
            levels.get("in place") == "yes",
            tuple(n for n in tensors if levels.get(f"layout of {n}") == "all"),
        )

    def _at(self, sizes: Mapping[str, int], levels: Mapping[str, str]) -> Workload | None:
        row = self._raw(sizes, levels)
        return row if self.op.allows(row) else None

    def _visits(self, row: Workload, levels: Mapping[str, str]) -> frozenset[Pair]:
        """The pairs of levels that a workload has and that have an effect in it. A size may stand for several regimes
        and counts for those it is listed in."""
        found = {(f, level) for f, level in levels.items() if f not in self.sizes and self._matters(row, f, level)}
        for name, size in row.axes:
            found |= {(name, level) for level, sizes in self.sizes[name].items() if size in sizes}
        pairs = (p for p in itertools.combinations(sorted(found), 2) if p[0][0] != p[1][0])
        if any(math.prod(self.op.shape(t, row)) for t in self.op.outputs.values()):
            return frozenset(pairs)
        empty = {(name, level) for name, level in found if name in self.sizes and level == "0"}
        return frozenset(p for p in pairs if not empty.isdisjoint(p))

    def _matters(self, row: Workload, factor: str, level: str) -> bool:
        """Rows that lie apart, where there is more than one; elements that do, likewise."""
        if not factor.startswith("layout of ") or level == "dense":
            return True
        name = factor.removeprefix("layout of ")
        shape = self.op.shape({**self.op.inputs, **self.op.outputs}[name], row)
        return math.prod(shape[:-1] if level == "rows" else shape) > 1

    def _cost(self, row: Workload) -> int:
        problems = math.prod(self.op.size(n, row) for n in self.problems) if self.problems else 0
        return self.op.elements(row) + max(0, self.op.operations(row)) // 16 + _PROBLEM * problems


def kinds(op: Op, dtype: DType) -> list[str]:
    """The kinds of values that make a difference for an op's inputs, `normal` first."""
    drawn = [t for t in op.inputs.values() if t.given is None]
    floats = [t for t in drawn if (t.dtype is None and dtype.is_float) or (t.dtype or "").startswith(("fp", "bf"))]
    specials = any(t.specials for t in floats)
    found = []
    for kind in VALUES:
        if kind in _ONLY_REPORTED or (kind == "ends" and len(floats) == len(drawn)):
            continue
        if kind in ("special", "lines") and not specials and not any(t.specials for t in drawn):
            continue
        if kind == "negative" and not any(t.range[0] < 0 for t in floats):
            continue
        if kind in ("subnormal", "halfway", "cancel", "outlier", "offset") and not floats:
            continue
        found.append(kind)
    return found
