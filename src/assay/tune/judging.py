"""Checks configurations as `check` does, each in its own process: on a few fuzzed workloads, and on the tuned workload.
Every call gets fresh, poisoned outputs and its own inputs, so that no configuration can profit from values that another
one left in a buffer."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from assay.check.evidence import CheckEvidence
from assay.check.exploring import Bounds
from assay.check.job import Job, Settings
from assay.check.plain import PlainTorch
from assay.check.schedule import in_threads
from assay.record import Record, Status
from assay.target import DEFAULT
from assay.tune.planning import Options, TunePlan
from assay.tune.space import Configuration, Key, key
from assay.worker import Pool


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


@dataclass(frozen=True)
class Judge:
    """Checks configurations of one kernel, a batch at a time. The pool and plain PyTorch are shared by all batches:
    their processes have imported what a language needs, and have measured PyTorch's own errors."""

    plan: TunePlan
    options: Options
    pool: Pool
    plain: PlainTorch

    def judged(self, configurations: Sequence[Configuration]) -> Iterator[tuple[Key, Judged]]:
        """Yield the verdict on each configuration as soon as it is known."""
        plan = self.plan
        # Expectations on the machine code apply to the default configuration, and `check` verifies them.
        kernel = replace(plan.kernel, expects={})
        groups = []
        for configuration in configurations:
            jobs = [Job(kernel, plan.op, plan.workload.dtype, plan.workload, parameters=configuration)]
            if self.options.workloads:
                jobs.insert(0, Job(kernel, plan.op, plan.workload.dtype, parameters=configuration))
            groups.append(jobs)
        records: list[list[Record]] = [[] for _ in groups]
        for index, record in in_threads(groups, self.pool, self._settings):
            records[index].append(record)
            if len(records[index]) == len(groups[index]):
                yield key(configurations[index]), _summed(records[index])

    def _settings(self, pool: Pool, stop: threading.Event) -> Settings:
        options = self.options
        return Settings(
            pool,
            self.plain,
            self.plan.target or DEFAULT,
            Bounds(options.workloads, seed=options.seed),
            {},
            options.run,
            threads=max(2, (os.cpu_count() or 2) // 2),
            stop=stop,
        )


def _summed(records: list[Record]) -> Judged:
    """Return the worst verdict among the records of one configuration."""
    workloads = sum(CheckEvidence.of(r).workloads or 0 for r in records)
    for status in (Status.FAIL, Status.INCONCLUSIVE, Status.SKIPPED, Status.COMPILED):
        for record in records:
            if record.status is status:
                first, *details = record.reason.split("\n")
                reason = "\n".join([f"{first} (on {record.workload})", *details])
                return Judged(status, reason, record.detector, record.replay, workloads)
    return Judged(Status.PASS, workloads=workloads)
