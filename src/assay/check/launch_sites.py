"""Adds workloads for launches that no planned workload leads to, and records which launches were reached."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.coverage import launch_sites
from assay.coverage.launch_sites import LaunchSite
from assay.coverage.row import Effort, Planned
from assay.dtype import DType
from assay.kernel import Kernel
from assay.op import Op
from assay.target import Target
from assay.worker import Limits, Pool, Worker, WorkerLost
from assay.worker.failure import Refused
from assay.worker.questions import FindLaunches
from assay.worker.request import Call
from assay.workload import Workload

_SECONDS = 4.0
"""The most time for running the kernel's Python."""
_LIMITS = Limits(seconds=_SECONDS, compile=15.0, wall=30.0)
_BATCH = 64
_LONG = 64
_ENOUGH = 3
"""Workloads of a launch for which no others are sought."""


@dataclass
class LaunchSites:
    """The launches in one kernel's source, and those that each workload leads to."""

    sites: tuple[LaunchSite, ...]
    by_workload: dict[str, frozenset[LaunchSite]] = field(default_factory=dict)
    added: list[Planned] = field(default_factory=list)
    """Workloads for launches that few or no planned ones lead to, cheap ones first."""
    cheapest: dict[LaunchSite, Workload] = field(default_factory=dict)
    """The smallest workload found for each of these launches, which may be too large to be tried."""

    def reached(self, rows: Iterable[Planned]) -> Counter[LaunchSite]:
        """Return how many of the workloads lead to each launch."""
        return Counter(site for row in rows for site in self.by_workload.get(str(row.workload), ()))


def find(
    kernel: Kernel,
    op: Op,
    dtype: DType,
    tried: Sequence[Planned],
    effort: Effort,
    seed: int,
    omittable: Iterable[str],
    parameters: dict[str, Any],
    target: Target,
    pool: Pool,
) -> LaunchSites:
    """Return the launches of a kernel that has several, with workloads for those that few of the tried ones led to.

    This takes a process of its own: what a kernel keeps between calls must not come from tensors without memory."""
    found = LaunchSites(launch_sites.sites(kernel))
    if len(found.sites) < 2:
        return found
    try:
        worker = pool.worker(kernel.address.backend, "native", _LIMITS)
    except WorkerLost:
        return found
    asking = _Asking(worker, kernel, parameters, str(target), time.monotonic() + _SECONDS)
    try:
        for row, lines in asking.lines(tried):
            found.by_workload[str(row.workload)] = _at(found.sites, lines)
        reached = found.reached(tried)
        few = [site for site in found.sites if reached[site] < _ENOUGH] if reached else []
        shapes = launch_sites.shapes(op, dtype, effort, seed, omittable) if few else []
        _add(found, few, [(row, _at(found.sites, lines)) for row, lines in asking.lines(shapes)], effort, op)
    except (Refused, WorkerLost):
        pass  # what the kernel does is judged elsewhere; here it only remains unknown
    finally:
        worker.close()
    return found


def _add(
    found: LaunchSites,
    few: Sequence[LaunchSite],
    shapes: Sequence[tuple[Planned, frozenset[LaunchSite]]],
    effort: Effort,
    op: Op,
) -> None:
    """Add for each of these launches the cheapest workloads of lengths that are powers of two, and of other lengths,
    with one long axis or several."""
    most = max(effort.most, effort.typical, effort.huge if op.independent else 0)
    added: dict[str, Planned] = {}
    for site in few:
        rows = [row for row, leads_to in shapes if site in leads_to]
        if rows:
            found.cheapest[site] = rows[0].workload
        by_kind = {_kind(row): row for row in reversed(rows) if row.cost <= most}
        added |= {str(row.workload): row for row in by_kind.values()}
    found.by_workload |= {str(row.workload): leads_to for row, leads_to in shapes if str(row.workload) in added}
    found.added = sorted(added.values(), key=lambda row: row.cost)


def _kind(row: Planned) -> tuple[bool, bool]:
    sizes = [size for _, size in row.workload.axes]
    return all(size & (size - 1) == 0 for size in sizes), sum(size >= _LONG for size in sizes) > 1


@dataclass
class _Asking:
    worker: Worker
    kernel: Kernel
    parameters: dict[str, Any]
    target: str
    until: float

    def lines(self, rows: Sequence[Planned]) -> Iterator[tuple[Planned, set[int]]]:
        """Yield the workloads, each with the lines of the kernel's file where it launches something."""
        for start in range(0, len(rows), _BATCH):
            left = self.until - time.monotonic()
            if left <= 0:
                return
            batch = rows[start : start + _BATCH]
            calls = [Call.of(self.kernel, row.workload, "native", self.parameters) for row in batch]
            answer = self.worker.ask(FindLaunches(calls, self.target, left))
            for row, lines in zip(batch, answer.lines, strict=False):
                yield row, set(lines)


def _at(sites: Iterable[LaunchSite], lines: set[int]) -> frozenset[LaunchSite]:
    return frozenset(site for site in sites if any(site.line <= line <= site.last for line in lines))
