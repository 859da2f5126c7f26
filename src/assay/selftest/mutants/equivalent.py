"""Proofs that a mutant computes what its kernel computes: the same machine code, or the same bits."""

import hashlib
import itertools
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from assay.backends import Level, here
from assay.check import calls
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
"""Elements of a workload on which outputs are compared, by where it runs: many small ones say more than few large."""
_LONGEST = {"native": 1 << 18, "triton-interpret": 1 << 16, "numba-sim": 1 << 11}
"""The largest size around a changed constant that is still tried."""
_BUILT = 1 << 14
"""Elements of a workload for which machine code is compared."""
_SEARCHED = 200
"""Workloads searched for a difference where the same bits would prove nothing."""
_CONFIRMED = 600
"""Workloads on which a mutant of the same machine code must agree."""
_TOGETHER = 100
"""Sizes that are combined in pairs."""
_INSTANCES = 8
"""Workloads per dtype for which machine code is compared."""


_Built = tuple[Any, ...]
"""What a workload launches."""


@dataclass(frozen=True)
class Proof:
    holds: bool
    how: str
    compared: int = 0
    differs_at: str = ""


def workloads(
    op: Op, dtype: DType, count: int, sizes: tuple[int, ...] = (), budget: int = 1 << 13, longest: int = 1 << 18
) -> Iterator[Workload]:
    """Up to `count` different workloads of about `budget` elements at most: the contract's edges, then in turn each
    axis alone at each of `sizes` (up to `longest`), all axes at them (up to 32 × `budget` elements), and drawn ones,
    the same in every run."""
    seen: set[str] = set()
    for workload in _drawn(op, dtype, sizes, budget, longest):
        if len(seen) >= count:
            return
        if str(workload) not in seen and workload.allowed:
            seen.add(str(workload))
            yield workload


def _drawn(op: Op, dtype: DType, sizes: tuple[int, ...], budget: int, longest: int) -> Iterator[Workload]:
    """What `check` would try, then of each kind one in turn."""
    yield from _planned(op, dtype, budget)
    kinds = [_alone(op, dtype, sizes, longest), _together(op, dtype, sizes, budget), _by_chance(op, dtype, budget)]
    while kinds:
        for kind in tuple(kinds):
            if (workload := next(kind, None)) is None:
                kinds.remove(kind)
            else:
                yield workload


def _together(op: Op, dtype: DType, sizes: tuple[int, ...], budget: int) -> Iterator[Workload]:
    """All axes at these sizes."""
    attributes = tuple((n, a.default) for n, a in op.attributes.items())
    pairs = itertools.product(sorted(set(sizes), reverse=True)[:_TOGETHER], repeat=min(2, len(op.axes)))
    for together in sorted(pairs, key=min, reverse=True):  # those first in which no axis is short
        chosen = itertools.cycle(together)
        axes = tuple((n, max(a.min, min(a.max, next(chosen)))) for n, a in op.axes.items())
        workload = Workload(op, axes, dtype, attributes, sum(together) % 1000)
        if workload.allowed and workload.elements <= 32 * budget:
            yield workload


def _alone(op: Op, dtype: DType, sizes: tuple[int, ...], longest: int) -> Iterator[Workload]:
    """One axis at each of these sizes, the others short."""
    attributes = tuple((n, a.default) for n, a in op.attributes.items())
    for beside, kind in ((3, "normal"), (1, "special")):
        for size in sizes:
            for name, axis in op.axes.items():
                if max(axis.min, 1) <= size <= min(axis.max, longest):
                    axes = tuple((n, size if n == name else max(a.min, min(a.max, beside))) for n, a in op.axes.items())
                    yield Workload(op, axes, dtype, attributes, size % 1000, kind)


def _by_chance(op: Op, dtype: DType, budget: int) -> Iterator[Workload]:
    chance = random.Random(f"{op.name}/{dtype}")
    kinds = [v for v in VALUES if v != "beyond"]
    for _ in range(100_000):  # an op with few workloads ends before
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
    """What `check` itself would try, at this size."""
    rows = plan(op, number, Effort(40, budget, 2 * budget, 2 * budget, 0)).rows
    return [row.workload for row in reversed(rows)]  # large ones show more


class Prover:
    """Tries the proofs, cheap ones first. What it learns about a kernel itself serves for all its mutants."""

    def __init__(
        self, pool: Pool, count: int, seconds: float, stop: threading.Event | None = None, threads: int = 2
    ) -> None:
        self._pool, self._count, self._seconds, self._threads = pool, count, seconds, threads
        self._stop = stop or threading.Event()
        """Proofs that are under way end without a result."""
        self._plain = PlainTorch(pool)
        self._digests: dict[tuple[str, str], str] = {}
        self._code: dict[tuple[str, str], _Built] = {}

    def prove(self, mutant: Mutant, kernel: Kernel, op: Op) -> Proof:
        """Is the mutant, written out as `kernel`, the same as what it was made from?"""
        try:
            if mutant.device and mutant.kernel.address.backend != "njit":
                instances = self._same_code(mutant, kernel, op)
                # What was built may not hold the changed line: some workloads must agree too.
                if instances and (bits := self._same_bits(mutant, kernel, op, _CONFIRMED)).holds:
                    return replace(bits, how=f"the same machine code for sm_90 in {instances} builds, and {bits.how}")
            bits = self._same_bits(mutant, kernel, op, self._count)
            if bits.holds and self._hides(mutant):
                return replace(bits, holds=False, how=f"{bits.how}, which prove nothing about reads and races")
            return bits
        except WorkerLost as lost:
            return Proof(False, f"no proof: {lost.detail}")

    @staticmethod
    def _hides(mutant: Mutant) -> bool:
        """May it change what no output shows? Triton's interpreter has no threads, and sees every read; on a GPU
        a fence stops those behind a tensor."""
        where = here(mutant.kernel)
        if where.device == "cuda":
            return mutant.operator == "barrier"
        return mutant.hidden and where.mode != "triton-interpret"

    def _same_code(self, mutant: Mutant, kernel: Kernel, op: Op) -> int:
        """How many workloads launch the same machine code; 0 where one does not. Only of code that is compiled: what a
        launch passes to it is not seen here."""
        deadline = time.monotonic() + self._seconds
        points = [w for d in _dtypes(mutant.kernel, op) for w in _built(op, dtype(d), _around(mutant))]
        workers: dict[str, Worker] = {}
        compared = 0
        try:
            for point in points:
                key = (mutant.kernel.name, str(point))
                if key not in self._code:
                    self._code[key] = self._built(workers, "original", mutant.kernel, point)
                built = self._built(workers, "mutant", kernel, point)
                if built != self._code[key] or self._stop.is_set() or time.monotonic() > deadline:
                    return 0
                compared += bool(built)
        finally:
            for worker in workers.values():
                worker.close()
        return compared

    def _built(self, workers: dict[str, Worker], which: str, kernel: Kernel, point: Workload) -> tuple[Any, ...]:
        """What a kernel launches on a workload: hashes of machine code, and the shared memory that goes with it. What
        cannot be built is like nothing else."""
        if which not in workers:
            workers[which] = self._pool.worker(kernel.address.backend, "native")
        request = Compile(Call.of(kernel, point, "native", {}), str(DEFAULT))
        try:
            launches = workers[which].ask(request, 300).launches
        except Refused as refused:
            return (which, refused.failure.message)
        return tuple((one.artifact["text_hash"], one.artifact["shared"], one.shared) for one in launches)

    def _same_bits(self, mutant: Mutant, kernel: Kernel, op: Op, count: int) -> Proof:
        """Both on many workloads, the outputs compared bit by bit."""
        deadline = time.monotonic() + self._seconds
        where = here(mutant.kernel)
        if where.level not in (Level.RUN, Level.INTERPRET):
            return Proof(False, "it cannot run here")
        workers = [self._pool.worker(kernel.address.backend, where.mode) for _ in range(2)]
        compared = 0
        try:
            for point in self._points(mutant, op, where.mode, count):
                if time.monotonic() > deadline or self._stop.is_set():
                    return Proof(False, f"no difference in {compared} workloads, then time was up", compared)
                key = (mutant.kernel.name, str(point))
                if key not in self._digests:
                    self._digests[key] = self._digest(workers[0], mutant.kernel, point)
                if self._digests[key].startswith("error"):
                    continue  # beyond what the kernel itself can be asked here
                if self._digest(workers[1], kernel, point) != self._digests[key]:
                    return Proof(False, f"its outputs differ in workload {compared + 1}", compared, str(point))
                compared += 1
        finally:
            for worker in workers:
                worker.close()
        return Proof(compared > 0, f"bit-equal outputs on {compared} workloads", compared)

    def _points(self, mutant: Mutant, op: Op, mode: str, count: int) -> Iterator[Workload]:
        """Workloads in all dtypes, in turn."""
        dtypes = _dtypes(mutant.kernel, op)
        each = -(-(min(_SEARCHED, count) if self._hides(mutant) else count) // len(dtypes))
        sizes = _around(mutant)
        drawn = [workloads(op, dtype(d), each, sizes, _BUDGET[mode], _LONGEST[mode]) for d in dtypes]
        for _ in range(each):
            for one in drawn:
                if (point := next(one, None)) is not None:
                    yield point

    def _digest(self, worker: Worker, kernel: Kernel, point: Workload) -> str:
        """A hash of the outputs of one run, in which every NaN counts as the same; or what went wrong."""
        conditions = Conditions(here(kernel), self._plain, {}, {}, self._threads)
        result = calls.once(worker, kernel, point, conditions)
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
    """Sizes at a changed constant and beside it; then at the other constants of the source, beside them and at twice
    them: where a tile ends is where a small change to its index shows."""
    near = {c + d: None for c in mutant.constants for d in (-1, 0, 1) if c + d >= 0}
    for c in mutant.written:
        near |= dict.fromkeys((c, 2 * c, c + 1, c - 1, 2 * c + 1))
    return tuple(near)


def _dtypes(kernel: Kernel, op: Op) -> list[str]:
    return [d for d in op.dtypes if not kernel.dtypes or d in kernel.dtypes]


def _built(op: Op, number: DType, sizes: tuple[int, ...]) -> list[Workload]:
    edges = _planned(op, number, _BUILT)
    around = [w for w in workloads(op, number, len(edges) + 64, sizes) if set(dict(w.axes).values()) & set(sizes)]
    return [*edges[:_INSTANCES], *around[:_INSTANCES]]
