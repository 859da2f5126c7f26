"""Times configurations as `bench` does: cold, in graphs on a GPU, several in turns in the same rounds, each in its own
process, with the outputs of timed calls judged."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Self

from assay.backends import backend
from assay.bench.cell import COPY, Cell
from assay.bench.entrant import YARDSTICKS, Entrant
from assay.bench.evidence import BenchEvidence
from assay.bench.planning import Options as BenchOptions
from assay.bench.processes import Processes, free_bytes
from assay.bench.spent import Spent
from assay.bench.truth import Truth
from assay.check.plain import PlainTorch
from assay.machine.model import Model, best, this_device
from assay.record import Record
from assay.tune.choosing import spread
from assay.tune.planning import Options, TunePlan
from assay.tune.space import Configuration, Key, key, label
from assay.worker import Pool

_SLICE = 1 << 15
"""Elements per slice in which outputs of timed calls are judged: every configuration was already checked in full."""
_OTHERS = 1
"""Samples of each other kind of time in a round; only cold times are compared."""


@dataclass
class _Configured(Entrant):
    """One configuration of a kernel, with processes of its own."""

    chooses: bool = True
    """Whether its first call may time variants of its own."""

    @property
    def identity(self) -> str:
        return f"{super().identity} with {label(self.parameters)}"

    @property
    def tunes_itself(self) -> bool:
        return self.chooses and super().tunes_itself


class Timing:
    """Times configurations of one kernel on one workload. A context manager: it owns the processes that are timed."""

    def __init__(self, plan: TunePlan, options: Options, pool: Pool, plain: PlainTorch, tunes_itself: bool) -> None:
        """`tunes_itself` is true if a first call may time variants of its own, so that none is built in parallel."""
        self.plan, self.options, self.tunes_itself = plan, options, tunes_itself
        self.spent = Spent()
        self._pool, self._plain, self._stack = pool, plain, ExitStack()

    def __enter__(self) -> Self:
        return self

    @cached_property
    def _processes(self) -> Processes:
        options = self.options
        threads = options.threads or os.cpu_count() or 1
        round_seconds = options.budget / options.rounds
        processes = Processes(
            self._pool,
            options.seconds,
            threads,
            free_bytes() // 2,
            round_seconds=round_seconds,
            spent=self.spent,
            others=_OTHERS,
        )
        return self._stack.enter_context(processes)

    @cached_property
    def _truth(self) -> Truth:
        return Truth(self.plan.workload, self._plain, self.plan.here.device, _SLICE)

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def timed(
        self, configurations: Sequence[Configuration], rounds: int, tick: Callable[[str], None] = lambda text: None
    ) -> dict[Key, Record]:
        """Return bench's record of each configuration, all timed in the same rounds."""
        kernel, here = self.plan.kernel, self.plan.here
        entrants: list[Entrant] = [
            _Configured(label(c), kernel, here, self._truth, self._processes, dict(c), chooses=self.tunes_itself)
            for c in configurations
        ]
        if (yardstick := backend("torch").availability()).device == here.device:
            entrants.append(Entrant(COPY, None, yardstick, self._truth, self._processes))
        cell = Cell(self.plan.workload, entrants, "", self._cell_options(rounds), _model, self.spent)
        try:
            records = list(cell.run(tick))
        finally:
            self._processes.retire({YARDSTICKS})
        return {key(BenchEvidence.of(record).parameters or {}): record for record in records}

    def _cell_options(self, rounds: int) -> BenchOptions:
        options = self.options
        return BenchOptions(
            against=(),
            rounds=rounds,
            budget=options.budget * rounds / options.rounds,
            patient=False,
            seconds=options.seconds,
            threads=options.threads,
            second_clock=False,
            seed=options.seed,
            run=options.run,
        )


@cache
def _model(device: str) -> Model | None:
    return best(this_device(device))


def method_of(record: Record) -> dict[str, Any]:
    """Return how a time was taken, as a record of tune stores it."""
    taken = BenchEvidence.of(record)
    return {
        "rounds": taken.rounds,
        "method": taken.method,
        "threads": taken.threads,
        "spread": spread(record),
    }
