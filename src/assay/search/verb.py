"""The verb itself: runs one study after another, on shared processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from assay.errors import UsageError
from assay.record import Record
from assay.search import planning
from assay.search.cluster import Cluster
from assay.search.local import Local
from assay.search.options import Architecture, Common, Precision, Sensitivity
from assay.search.planning import Plan
from assay.search.scheduler import Scheduler
from assay.search.storage import Storage
from assay.search.study import Resumed, Study
from assay.settings import settings_of

KINDS: Mapping[str, tuple[type[Common], Callable[[str, Any], Plan]]] = {
    "precision": (Precision, planning.precision),
    "architecture": (Architecture, planning.architecture),
    "sensitivity": (Sensitivity, planning.sensitivity),
}
Tick = Callable[[str, int], None]
"""Called with the current activity and the number of trials done."""


def search(kind: str, model: str, **settings: Any) -> Iterator[Record]:
    """Search like `assay.search`, without keeping the records."""
    if kind not in KINDS:
        raise UsageError(f"'{kind}' cannot be searched", fix=f"one of: {', '.join(KINDS)}")
    options, planned = KINDS[kind]
    return run(planned(model, settings_of(options, settings)))


def run(
    plan: Plan,
    tick: Tick = lambda text, done: None,
    scheduler: Scheduler | None = None,
    resumed: Resumed = lambda name, kept: None,
) -> Iterator[Record]:
    """Yield records as they are ready. `scheduler`: where trials run; None: in processes on this machine, or on the
    cluster that the plan names."""
    done = before = 0

    def shown(text: str, trials: int) -> None:
        nonlocal done
        done = before + trials
        tick(text, done)

    storage = Storage(plan.options.storage)
    with scheduler or _crew(plan, lambda text: tick(text, done)) as crew:
        for planned in plan.studies:
            if isinstance(crew, Cluster):
                planned = planned.on(crew.device)
            yield from Study(plan, planned, crew, storage, shown, resumed).run()
            before = done


def _crew(plan: Plan, tick: Callable[[str], None]) -> Scheduler:
    if not plan.options.ray:
        return _local(plan, tick)
    tick(f"connecting to {plan.options.ray}")
    options = plan.options
    return Cluster(options.ray, options.workers, options.device, round(options.memory * (1 << 30)))


def _local(plan: Plan, tick: Callable[[str], None]) -> Local:
    """Return processes that share the cores."""
    cores = len(os.sched_getaffinity(0))
    workers = plan.options.workers or 1
    threads = max(1, cores // workers)
    return Local(workers, {"OMP_NUM_THREADS": str(threads)}, plan.memory, tick)
