"""The factors in which the workloads of one op and dtype differ.

They are each axis (by its regimes of sizes), each attribute, the kind of values, alignment, strides, optional inputs
and in-place. Every factor has levels; a workload has one level of each."""

import itertools
import math
import random
from collections.abc import Iterable, Mapping

from assay.coverage import regimes
from assay.coverage.row import Effort, Level, Pair, Planned, ordered
from assay.dtype import DType
from assay.op import Op
from assay.workload import VALUES, Workload

_ONLY_REPORTED = ("beyond",)
SHOWING = 256
"""The least number of elements of an input that shows a kind of values whatever else the workload has: special values
then occur at several places."""
_PROBLEM = 128
"""Elements that each problem of a batch adds to the cost: it tends to be a program."""


class Factors:
    """`levels` is by factor and `sizes` by axis and regime. `lengths` are the axes, without those that count problems
    if few problems are tried. `plain` is the usual level of every factor except the axes."""

    def __init__(self, op: Op, dtype: DType, effort: Effort, rng: random.Random, omittable: tuple[str, ...]) -> None:
        self.op, self.dtype, self.effort, self.rng = op, dtype, effort, rng
        self._problems = {name for name, axis in op.axes.items() if axis.problems and effort.problems}
        self.lengths = [name for name in op.axes if name not in self._problems]
        self.sizes = {
            name: regimes.of(axis, effort.problems if name in self._problems else effort.most)
            for name, axis in op.axes.items()
        }
        self._left: dict[tuple[str, str], list[int]] = {}
        """Sizes that have not been drawn yet, by axis and regime."""
        tensors = {**op.inputs, **op.outputs}
        self.levels: dict[str, list[str]] = {name: list(by_regime) for name, by_regime in self.sizes.items()}
        for name, attribute in op.attributes.items():
            self.levels[name] = [repr(c) for c in attribute.choices or (attribute.default,)]
        self.levels["values"] = kinds(op, dtype)
        self.levels["offset"] = ["0"] if op.aligned else ["0", "1", "3", *_between(dtype)]
        for name, tensor in tensors.items():
            if tensor.strided:
                self.levels[f"layout of {name}"] = ["dense", "rows", *(["all"] if tensor.strided == "all" else [])]
        for name, tensor in op.inputs.items():
            if tensor.optional:
                self.levels[f"{name} given"] = ["yes", "no"]
        for name in omittable:
            self.levels[f"{name} asked for"] = ["yes", "no"]
        if op.aliases:
            self.levels["in place"] = ["no", "yes"]
        self.all_pairs: set[Pair] = {
            ordered((f, a), (g, b))
            for f, g in itertools.combinations(self.levels, 2)
            for a in self.levels[f]
            for b in self.levels[g]
        }
        self.impossible: dict[str, list[Pair]] = {}
        self.plain = {name: levels[0] for name, levels in self.levels.items() if name not in self.sizes}
        for name, attribute in op.attributes.items():
            self.plain[name] = repr(attribute.default)

    def random_levels(self, fixed: Mapping[str, str]) -> dict[str, str]:
        return {f: fixed.get(f) or self.rng.choice(levels) for f, levels in self.levels.items()}

    def size(self, axis: str, regime: str) -> int:
        """Return a random size of the regime; none repeats before all others have been drawn."""
        left = self._left.setdefault((axis, regime), [])
        if not left:
            left += self.rng.sample(self.sizes[axis][regime], len(self.sizes[axis][regime]))
        return left.pop()

    def at(self, sizes: Mapping[str, int], levels: Mapping[str, str]) -> Workload | None:
        row = self.raw(sizes, levels)
        return row if row.allowed else None

    def raw(self, sizes: Mapping[str, int], levels: Mapping[str, str]) -> Workload:
        attributes = tuple(
            (n, next((c for c in (a.choices or (a.default,)) if repr(c) == levels.get(n)), a.default))
            for n, a in self.op.attributes.items()
        )
        tensors = [*self.op.inputs, *self.op.outputs]
        return Workload(
            self.op,
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

    def planned(self, workload: Workload, why: str, levels: Mapping[str, str]) -> Planned:
        return Planned(workload, why, self.visits(workload, levels), self.cost(workload))

    def cost(self, row: Workload) -> int:
        problems = math.prod(size for name, size in row.axes if name in self._problems) if self._problems else 0
        return row.elements + max(0, row.operations) // 16 + _PROBLEM * problems

    def visits(self, row: Workload, levels: Mapping[str, str]) -> frozenset[Pair]:
        """Return the pairs of the workload's levels that have an effect in it. A size counts for every regime that
        lists it."""
        present = {(f, level) for f, level in levels.items() if f not in self.sizes and self._matters(row, f, level)}
        for name, size in row.axes:
            present |= {(name, level) for level, sizes in self.sizes[name].items() if size in sizes}
        pairs = (p for p in itertools.combinations(sorted(present), 2) if p[0][0] != p[1][0])
        if not self.shows(row):
            pairs = (p for p in pairs if not self.needs_many(p))
        if any(math.prod(row.shape(t)) for t in self.op.outputs.values()):
            return frozenset(pairs)
        empty = {(name, level) for name, level in present if name in self.sizes and level == "0"}
        return frozenset(p for p in pairs if not empty.isdisjoint(p))

    def shows(self, row: Workload) -> bool:
        """True if some input has enough elements to show a kind of values."""
        return any(math.prod(row.shape(t)) >= SHOWING for t in self.op.inputs.values())

    def needs_many(self, levels: Iterable[Level]) -> bool:
        """True for a kind of values combined with anything but a size: one element of that kind may not show it."""
        by_factor = dict(levels)
        beside = by_factor.keys() - self.sizes.keys() - {"values"}
        return by_factor.get("values", "normal") != "normal" and bool(beside)

    def unseen(self, row: Workload, pair: Pair) -> bool:
        """True if the row has too few elements to show the pair."""
        return self.needs_many(pair) and not self.shows(row)

    def _matters(self, row: Workload, factor: str, level: str) -> bool:
        """False for strided rows of a tensor with at most one row, and for strided elements of at most one element."""
        if not factor.startswith("layout of ") or level == "dense":
            return True
        name = factor.removeprefix("layout of ")
        shape = row.shape({**self.op.inputs, **self.op.outputs}[name])
        return math.prod(shape[:-1] if level == "rows" else shape) > 1


def _between(dtype: DType) -> list[str]:
    """Return offsets, in elements, that align a tensor to 4 or 8 bytes and no more: some vectors fit there."""
    return [str(size // dtype.itemsize) for size in (4, 8) if size // dtype.itemsize not in (0, 1, 3)]


def kinds(op: Op, dtype: DType) -> list[str]:
    """Return the kinds of values that make a difference for an op's inputs, `normal` first."""
    drawn = [t for t in op.inputs.values() if t.given is None]
    floats = [t for t in drawn if (t.dtype is None and dtype.is_float) or (t.dtype or "").startswith(("fp", "bf"))]
    specials = any(t.specials for t in floats)
    applicable = []
    for kind in VALUES:
        if kind in _ONLY_REPORTED or (kind == "ends" and len(floats) == len(drawn)):
            continue
        if kind in ("special", "lines") and not specials and not any(t.specials for t in drawn):
            continue
        if kind == "negative" and not any(t.range[0] < 0 for t in floats):
            continue
        if kind in ("subnormal", "halfway", "cancel", "outlier", "offset") and not floats:
            continue
        applicable.append(kind)
    return applicable
