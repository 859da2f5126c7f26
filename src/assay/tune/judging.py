"""Checks configurations as `check` does, each in a process of its own: on a few fuzzed workloads, and on the workload
that is tuned. Every call gets fresh, poisoned outputs and its own inputs, so that no configuration can profit from what
another one left in a buffer."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from assay.check.evidence import CheckEvidence
from assay.check.exploring import Bounds
from assay.check.job import Job, Settings
from assay.check.plain import PlainTorch
from assay.check.schedule import side_by_side
from assay.record import Record, Status
from assay.target import DEFAULT
from assay.tune.planning import Options, TunePlan
from assay.tune.space import Configuration, Key, key
from assay.worker import Limits, Pool


@dataclass(frozen=True)
class Judged:
    """The result of checking one configuration."""

    status: Status
    reason: str = ""
    detector: str = ""
    replay: str = ""
    workloads: int = 0

    @property
    def right(self) -> bool:
        return self.status is Status.PASS


def judged(plan: TunePlan, configurations: Sequence[Configuration], options: Options) -> Iterator[tuple[Key, Judged]]:
    """Yield whether each configuration computes the right result, as each is known."""
    # What the machine code must be holds for the default configuration: `check` looks at that.
    kernel = replace(plan.kernel, expects={})
    groups = []
    for configuration in configurations:
        jobs = [Job(kernel, plan.op, plan.workload.dtype, plan.workload, parameters=configuration)]
        if options.workloads:
            jobs.insert(0, Job(kernel, plan.op, plan.workload.dtype, parameters=configuration))
        groups.append(jobs)
    waiting = {key(c): len(jobs) for c, jobs in zip(configurations, groups, strict=True)}
    found: dict[Key, list[Record]] = {k: [] for k in waiting}
    for record in side_by_side(groups, lambda: Pool(Limits(options.seconds)), _settings(plan, options), None):
        this = key(CheckEvidence.of(record).parameters or {})
        if this not in found:
            continue
        found[this].append(record)
        if len(found[this]) == waiting[this]:
            yield this, _summed(found.pop(this))
    for this, records in found.items():  # a judging process was lost
        lost = Judged(Status.INCONCLUSIVE, "it could not be checked: the process that judges was lost")
        yield this, _summed(records) if any(r.failed for r in records) else lost


def _settings(plan: TunePlan, options: Options) -> Callable[[Pool, threading.Event], Settings]:
    def settings(pool: Pool, stop: threading.Event) -> Settings:
        return Settings(
            pool,
            PlainTorch(pool),
            plan.target or DEFAULT,
            Bounds(options.workloads, seed=options.seed),
            {},
            options.run,
            threads=max(2, (os.cpu_count() or 2) // 2),
            stop=stop,
        )

    return settings


def _summed(records: list[Record]) -> Judged:
    """Return the worst of the records of one configuration."""
    workloads = sum(CheckEvidence.of(r).workloads or 0 for r in records)
    for status in (Status.FAIL, Status.INCONCLUSIVE, Status.SKIPPED, Status.COMPILED):
        for record in records:
            if record.status is status:
                reason = f"{record.reason} (on {record.workload})"
                return Judged(status, reason, record.detector, record.replay, workloads)
    return Judged(Status.PASS, workloads=workloads)
