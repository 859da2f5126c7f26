"""The verb itself: one study after another, on processes that they share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from assay.record import Record
from assay.search.local import Local
from assay.search.planning import Plan
from assay.search.storage import Storage
from assay.search.study import Study

Tick = Callable[[str, int], None]


def run(plan: Plan, tick: Tick = lambda text, done: None) -> Iterator[Record]:
    """Records as they are ready. `tick` is called with what is being done and how many trials are done."""
    storage = Storage(plan.options.storage)
    cores = len(os.sched_getaffinity(0))
    threads = max(1, cores // plan.options.workers)
    environment = {"OMP_NUM_THREADS": str(threads)}
    shown_last = 0

    def heard(text: str) -> None:
        tick(text, shown_last)

    with Local(plan.options.workers, environment, plan.memory, heard) as scheduler:
        done = 0
        for planned in plan.studies:

            def shown(text: str, trials: int, before: int = done) -> None:
                nonlocal shown_last
                shown_last = before + trials
                tick(text, shown_last)

            study = Study(plan, planned, scheduler, storage, shown)
            yield from study.run()
            done = shown_last
