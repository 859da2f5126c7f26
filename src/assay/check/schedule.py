"""Runs jobs concurrently: in threads of this process, or in several judging processes if there are enough cores.

Judging is Python and small tensors, so threads of one process soon wait for each other. Each judging process has
workers of its own and sends its records back (assay.check.judges). The loss of a process ends in a record too."""

import contextlib
import os
import queue
from collections.abc import Callable, Iterator
from typing import Any

from assay.check.crew import Group, Share, Task, Verdict, languages, threads, threads_with
from assay.check.job import Job
from assay.check.judges import forks, judged
from assay.record import Record
from assay.worker import Pool

_WIDE = 12
"""The default limit of concurrent jobs: each takes memory, also on a GPU."""


def width(jobs: int | None) -> int:
    """Return how many jobs may run side by side."""
    return jobs or min(_WIDE, os.cpu_count() or 2)


def grouped(jobs: list[Job], wide: int) -> list[Group]:
    """Group jobs that share a worker: those of one kernel, or of one kernel and dtype if there are too few kernels."""
    kernels = len({(job.kernel.address, job.kernel.home) for job in jobs})
    groups: dict[Any, Group] = {}
    for job in jobs:
        apart = job.dtype.name if kernels < wide else ""
        groups.setdefault((job.kernel.address, job.kernel.home, apart), []).append(job)
    return list(groups.values())


def side_by_side(groups: list[Group], pool: Callable[[], Pool], settings: Share, jobs: int | None) -> Iterator[Record]:
    """Yield records as they become ready. `pool` and `settings` are called once in every process that judges."""
    wide = min(width(jobs), len(groups))
    judges = min((os.cpu_count() or 2) * 3 // 4, wide)
    tasks = [Task(i, group, tuple(range(len(group)))) for i, group in enumerate(groups)]
    if judges < 2 or not forks():
        yield from _here(tasks, pool, settings, wide)
    else:
        yield from judged(tasks, pool, settings, wide, judges)


def in_threads(groups: list[Group], pool: Pool, settings: Share) -> Iterator[tuple[int, Record]]:
    """Yield records as they become ready, each with the index of its group. All are judged in threads of this process,
    with the workers of a pool that stays open: a judging process would first import all that a language needs."""
    tasks = [Task(i, group, tuple(range(len(group)))) for i, group in enumerate(groups)]
    for each in threads_with(pool, _in_order(tasks), settings, min(width(None), len(groups)), languages(tasks)):
        if isinstance(each, Verdict):
            yield each.task, each.record


def _here(tasks: list[Task], pool: Callable[[], Pool], settings: Share, wide: int) -> Iterator[Record]:
    for each in threads(_in_order(tasks), pool, settings, wide, languages(tasks)):
        if isinstance(each, Verdict):
            yield each.record


def _in_order(tasks: list[Task]) -> Callable[[], Task | None]:
    waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)

    def next_task() -> Task | None:
        with contextlib.suppress(queue.Empty):
            return waiting.get_nowait()
        return None

    return next_task
