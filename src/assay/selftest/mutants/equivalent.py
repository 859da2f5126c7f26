"""Tests whether a mutant is equivalent to its kernel: the same machine code, or the same bits in the outputs."""

import hashlib
import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, cycle, product, zip_longest
from typing import Any

from assay.backends import Level, here
from assay.check import caller
from assay.check.building import for_launches
from assay.check.outcome import Conditions, Outcome
from assay.check.plain import PlainTorch
from assay.coverage import Effort, plan
from assay.dtype import DType, dtype
from assay.kernel import Kernel
from assay.op import Op
from assay.selftest.mutants.mutant import Mutant
from assay.target import DEFAULT
from assay.worker import Pool, Worker, WorkerLost
from assay.worker.bits import bits
from assay.worker.failure import Refused
from assay.worker.questions import Compile
from assay.worker.request import Call
from assay.workload import VALUES, Workload

_BUDGET = {"native": 1 << 13, "triton-interpret": 1 << 11, "numba-sim": 1 << 7}
"""Elements of a workload on which outputs are compared, by mode: many small workloads reveal more than few large
ones."""
_LONGEST = {"native": 1 << 18, "triton-interpret": 1 << 16, "numba-sim": 1 << 11}
"""The largest size near a changed constant that is tried, by mode."""
_LARGEST = 1 << 27
"""Elements of the largest workload that is run on a GPU because it leads to another launch."""
_BUILT = 1 << 14
"""Elements of a workload for which machine code is compared."""
_SEARCHED = 200
"""Workloads searched for a difference if equal bits would prove nothing."""
_CONFIRMED = 600
"""Workloads on which a mutant with the same machine code must agree."""
_TOGETHER = 100
"""The most sizes that are combined in pairs."""
_INSTANCES = 8
"""Workloads per dtype for which machine code is compared."""
_THREADS = 2


@dataclass(frozen=True)
class Proof:
    holds: bool
    how: str
    compared: int = 0
    differs_at: str = ""


def workloads(
    op: Op, dtype: DType, count: int, sizes: tuple[int, ...] = (), budget: int = 1 << 13, longest: int = 1 << 18
) -> Iterator[Workload]:
    """Yield up to `count` distinct workloads, mostly of up to `budget` elements: the contract's edges, then in turn
    each axis alone at each of `sizes` (up to `longest`), all axes at them (up to 32 × `budget` elements), and drawn
    ones, the same in every run."""
    seen: set[str] = set()
    for workload in _drawn(op, dtype, sizes, budget, longest):
        if len(seen) >= count:
            return
        if str(workload) not in seen and workload.allowed:
            seen.add(str(workload))
            yield workload


def _drawn(op: Op, dtype: DType, sizes: tuple[int, ...], budget: int, longest: int) -> Iterator[Workload]:
    """Yield the workloads that `check` would try, then one of each kind in turn."""
    yield from _planned(op, dtype, budget)
    kinds = [_alone(op, dtype, sizes, longest), _together(op, dtype, sizes, budget), _by_chance(op, dtype, budget)]
    while kinds:
        for kind in tuple(kinds):
            if (workload := next(kind, None)) is None:
                kinds.remove(kind)
            else:
                yield workload


def _together(op: Op, dtype: DType, sizes: tuple[int, ...], budget: int) -> Iterator[Workload]:
    """Yield workloads with all axes at these sizes."""
    pairs = product(sorted(set(sizes), reverse=True)[:_TOGETHER], repeat=min(2, len(op.axes)))
    for together in sorted(pairs, key=min, reverse=True):  # pairs without a short axis first
        chosen = cycle(together)
        axes = tuple((n, max(a.min, min(a.max, next(chosen)))) for n, a in op.axes.items())
        workload = Workload(op, axes, dtype, _defaults(op), sum(together) % 1000)
        if workload.allowed and workload.elements <= 32 * budget:
            yield workload


def _alone(op: Op, dtype: DType, sizes: tuple[int, ...], longest: int) -> Iterator[Workload]:
    """Yield workloads with one axis at each of these sizes and the others short."""
    for beside, kind in ((3, "normal"), (1, "special")):
        for size in sizes:
            for name, axis in op.axes.items():
                if max(axis.min, 1) <= size <= min(axis.max, longest):
                    axes = tuple((n, size if n == name else max(a.min, min(a.max, beside))) for n, a in op.axes.items())
                    yield Workload(op, axes, dtype, _defaults(op), size % 1000, kind)


def _defaults(op: Op) -> tuple[tuple[str, Any], ...]:
    return tuple((name, attribute.default) for name, attribute in op.attributes.items())


def _by_chance(op: Op, dtype: DType, budget: int) -> Iterator[Workload]:
    chance = random.Random(f"{op.name}/{dtype}")
    kinds = [v for v in VALUES if v != "beyond"]
    for _ in range(100_000):  # `workloads` stops earlier
        room, drawn = budget, {}
        for name in chance.sample(list(op.axes), len(op.axes)):
            axis = op.axes[name]
            most = max(axis.min, min(axis.max, room))
            power = 1 << chance.randrange(most.bit_length() + 1)
            size = chance.choice((power - 1, power, power + 1, chance.randint(axis.min, most), chance.randint(0, 40)))
            drawn[name] = max(axis.min, min(most, size))
            room //= max(1, drawn[name])
        yield Workload(
            op,
            tuple((n, drawn[n]) for n in op.axes),
            dtype,
            tuple((n, chance.choice(a.choices or (a.default,))) for n, a in op.attributes.items()),
            chance.randrange(10_000),
            chance.choice(kinds),
            0 if op.aligned else chance.choice((0, 0, 1, 3)),
            tuple(n for n, t in op.inputs.items() if t.strided and chance.random() < 0.5),
            tuple(n for n, t in op.inputs.items() if t.optional and chance.random() < 0.25),
            bool(op.aliases) and chance.random() < 0.5,
        )


def _planned(op: Op, number: DType, budget: int) -> list[Workload]:
    """Return the workloads that `check` itself would try, at this size."""
    rows = plan(op, number, Effort(40, budget, 2 * budget, 2 * budget, 0)).rows
    return [row.workload for row in reversed(rows)]  # larger ones reveal more


class Prover:
    """Tries the proofs, cheap ones first. Results about a kernel itself are reused for all its mutants."""

    def __init__(self, pool: Pool, count: int, seconds: float, stop: threading.Event | None = None) -> None:
        self._pool, self._count, self._seconds = pool, count, seconds
        self._stop = stop or threading.Event()
        """When set, proofs in progress end without a result."""
        self._plain = PlainTorch(pool)
        self._digests: dict[tuple[str, str], str] = {}
        self._code: dict[tuple[str, str], tuple[Any, ...]] = {}
        self._launches: dict[tuple[str, str], list[Workload]] = {}

    def prove(self, mutant: Mutant, kernel: Kernel, op: Op) -> Proof:
        """Return the proof that the mutant, written as `kernel`, computes the same as the original, or the reason why
        there is none."""
        try:
            if mutant.device and mutant.kernel.address.backend != "njit":
                instances = self._same_code(mutant, kernel, op)
                # The built code may not contain the changed line, so the outputs of some workloads must agree too. For
                # a barrier, equal outputs would prove nothing.
                if instances and self._contains(mutant, kernel, op):
                    bits = self._same_bits(mutant, kernel, op, _CONFIRMED)
                    if bits.holds:
                        same = f"the same machine code for sm_90 in {instances} builds"
                        return replace(bits, how=f"{same}, and {bits.how}")
            bits = self._same_bits(mutant, kernel, op, self._count)
            if bits.holds and (hidden := self._hidden(mutant)):
                return replace(bits, holds=False, how=f"{bits.how}, which prove nothing about {hidden}")
            return bits
        except WorkerLost as lost:
            return Proof(False, f"no proof: {lost.detail}")

    @staticmethod
    def _hidden(mutant: Mutant) -> str:
        """Return what the mutation may change that no compared output shows; "" if nothing. Triton's interpreter has no
        threads and sees every read; on a GPU the unmapped memory of a fence stops reads past a tensor, and no compared
        workload is so large that an index outgrows 32 bits."""
        where = here(mutant.kernel)
        if where.device == "cuda":
            if mutant.narrows:
                return "indices past 2³¹"
            return "races" if mutant.operator == "barrier" else ""
        return "reads and races" if mutant.hidden and where.mode != "triton-interpret" else ""

    def _same_code(self, mutant: Mutant, kernel: Kernel, op: Op) -> int | None:
        """Return how many workloads launch the same machine code; 0 if one does not, None if the time ran out. This
        covers only compiled code, not the arguments of a launch."""
        deadline = time.monotonic() + self._seconds
        points = [w for d in dtypes(mutant.kernel, op) for w in self._built(mutant, op, dtype(d))]
        compared = 0
        with self._worker(kernel, "native") as original, self._worker(kernel, "native") as changed:
            for point in points:
                key = (mutant.kernel.name, str(point))
                if key not in self._code:
                    self._code[key] = _launched(original, mutant.kernel, point)
                built = _launched(changed, kernel, point)
                if built != self._code[key]:
                    return 0
                if self._stop.is_set() or time.monotonic() > deadline:
                    return None
                compared += bool(built)
        return compared

    def _built(self, mutant: Mutant, op: Op, number: DType) -> list[Workload]:
        """Return the workloads of one dtype for which machine code is compared. Together they lead to every launch."""
        points = _built(op, number, _around(mutant))
        key = (mutant.kernel.name, str(number))
        if key not in self._launches:
            self._launches[key] = for_launches(mutant.kernel, op, number, points, {}, DEFAULT, self._pool)
        return points + self._launches[key]

    def _contains(self, mutant: Mutant, kernel: Kernel, op: Op) -> bool:
        """Return whether the built code contains the barrier's line: with a trap in its place, some of the code must
        differ."""
        if not mutant.marked:
            return True
        assert kernel.file is not None
        marked, _ = replace(mutant, data=mutant.marked).write(kernel.file.parent / "marked")
        return self._same_code(mutant, marked, op) == 0

    def _worker(self, kernel: Kernel, mode: str) -> closing[Worker]:
        return closing(self._pool.worker(kernel.address.backend, mode))

    def _same_bits(self, mutant: Mutant, kernel: Kernel, op: Op, count: int) -> Proof:
        """Run both on many workloads and compare the outputs bit by bit."""
        deadline = time.monotonic() + self._seconds
        where = here(mutant.kernel)
        if where.level not in (Level.RUN, Level.INTERPRET):
            return Proof(False, "it cannot run here")
        compared = 0
        with self._worker(kernel, where.mode) as original, self._worker(kernel, where.mode) as changed:
            for point in self._points(mutant, op, where.mode, count):
                if time.monotonic() > deadline or self._stop.is_set():
                    return Proof(False, f"no difference in {compared} workloads, then time was up", compared)
                key = (mutant.kernel.name, str(point))
                if key not in self._digests:
                    self._digests[key] = self._digest(original, mutant.kernel, point)
                if self._digests[key].startswith("error"):
                    continue  # the original does not support this workload here
                if self._digest(changed, kernel, point) != self._digests[key]:
                    return Proof(False, f"its outputs differ in workload {compared + 1}", compared, str(point))
                compared += 1
        return Proof(compared > 0, f"bit-equal outputs on {compared} workloads", compared)

    def _points(self, mutant: Mutant, op: Op, mode: str, count: int) -> Iterator[Workload]:
        """Yield workloads in all dtypes, in turn."""
        numbers = dtypes(mutant.kernel, op)
        each = -(-(min(_SEARCHED, count) if self._hidden(mutant) else count) // len(numbers))
        sizes = _around(mutant)
        drawn = [workloads(op, dtype(d), each, sizes, _BUDGET[mode], _LONGEST[mode]) for d in numbers]
        largest = _LARGEST if here(mutant.kernel).device == "cuda" else _LONGEST[mode]
        launches = chain.from_iterable(self._launches.get((mutant.kernel.name, d), ()) for d in numbers)
        small = (w for w in launches if w.elements <= largest)
        return chain(small, filter(None, chain.from_iterable(zip_longest(*drawn))))

    def _digest(self, worker: Worker, kernel: Kernel, point: Workload) -> str:
        """Return a hash of the outputs of one run, in which all NaNs count as equal, or the error."""
        conditions = Conditions(here(kernel), self._plain, dict, {}, _THREADS)
        result = caller.once(worker, kernel, point, conditions)
        if isinstance(result, Outcome):
            assert result.finding is not None
            return f"error: {result.finding.detector}"
        digest = hashlib.sha256()
        for value in result.values():
            if value.is_floating_point():
                value[value.isnan()] = float("nan")
            digest.update(bits(value.contiguous()).numpy().tobytes())
        return digest.hexdigest()


def _around(mutant: Mutant) -> tuple[int, ...]:
    """Return the sizes at and next to a changed constant, then at and next to the source's other constants and twice
    them: a small change to an index is visible at the end of a tile."""
    near = {c + d: None for c in mutant.constants for d in (-1, 0, 1) if c + d >= 0}
    for c in mutant.written:
        near |= dict.fromkeys((c, 2 * c, c + 1, c - 1, 2 * c + 1))
    return tuple(near)


def dtypes(kernel: Kernel, op: Op) -> list[str]:
    """Return the dtypes that both the kernel and its op support."""
    return [d for d in op.dtypes if not kernel.dtypes or d in kernel.dtypes]


def _built(op: Op, number: DType, sizes: tuple[int, ...]) -> list[Workload]:
    typical = Workload.of(op, f"dtype={number}")
    edges = [*([typical] if typical.allowed else []), *_planned(op, number, _BUILT)]
    around = [w for w in workloads(op, number, len(edges) + 64, sizes) if set(dict(w.axes).values()) & set(sizes)]
    return [*edges[:_INSTANCES], *around[:_INSTANCES]]


def _launched(worker: Worker, kernel: Kernel, point: Workload) -> tuple[Any, ...]:
    """Return what a kernel launches on a workload: hashes of its machine code, and the shared memory. The result for a
    kernel that cannot be built equals no other."""
    try:
        launches = worker.ask(Compile(Call.of(kernel, point, "native", {}), str(DEFAULT)), 300).launches
    except Refused as refused:
        return (kernel.identity, refused.failure.message)
    return tuple((one.artifact["text_hash"], one.artifact["shared"], one.shared) for one in launches)
