"""How long a process has really had: the clock, less the time in which the machine kept it waiting for a processor."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

_SHARE = 0.05
"""Of the time, at most, goes into looking: it reads the process table."""
SAMPLE_EVERY = 0.25


@dataclass(frozen=True)
class Reading:
    wall: float
    """Seconds by the clock."""
    own: float
    """Seconds of processor time of the process and all it started."""
    waited: float
    """Seconds that its threads together were ready to run and did not."""

    def charged(self) -> float:
        """Seconds that count. A sleeping process is charged the clock, for nothing keeps it from answering. A process
        that shares its processors is charged in proportion to what it got of them. Threads that only keep each other
        waiting are charged for the processors they used."""
        wanted = self.own + self.waited
        if wanted <= 0:
            return self.wall
        starved = min(self.wall, wanted) * self.waited / wanted
        return max(self.wall - starved, self.own / (os.cpu_count() or 1))


class Meter:
    """Of one process and its descendants, from now on. Threads that have ended count with what was last seen."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._began = time.monotonic()
        # Most questions are answered before the first look, and cost none.
        self._next = self._began + SAMPLE_EVERY
        self._looked: float | None = None
        self._first: dict[tuple[int, int], tuple[float, float]] = {}
        self._last: dict[tuple[int, int], tuple[float, float]] = {}
        self.resident = 0
        """Bytes, of all of them together, at the last look."""

    @property
    def looked(self) -> bool:
        """Has there been a look yet?"""
        return self._looked is not None

    @property
    def due(self) -> bool:
        """Is it worth another look?"""
        return time.monotonic() >= self._next

    def read(self) -> Reading:
        """Look again. What was before the first look counts by the clock."""
        began = time.monotonic()
        self._look()
        if self._looked is None:
            self._looked, self._first = began, dict(self._last)
        used = [(b[0] - a[0], b[1] - a[1]) for k, b in self._last.items() for a in (self._first.get(k, (0.0, 0.0)),)]
        own, waited = sum(u[0] for u in used), sum(u[1] for u in used)
        now = time.monotonic()
        self._next = now + max(SAMPLE_EVERY, (now - began) / _SHARE)
        return Reading(now - self._began, own, waited)

    def _look(self) -> None:
        try:
            process = psutil.Process(self._pid)
            tree = [process, *process.children(recursive=True)]
        except psutil.Error:
            tree = []
        self.resident = 0
        for one in tree:
            try:
                memory = one.memory_info()
                self.resident += memory.rss - memory.shared
                self._last |= _threads(one.pid) or {(one.pid, 0): (sum(one.cpu_times()[:2]), 0.0)}
            except (psutil.Error, OSError):
                continue  # it has ended meanwhile


def _threads(pid: int) -> dict[tuple[int, int], tuple[float, float]]:
    """Of each thread the seconds it ran and the seconds it waited for a processor, as Linux counts them. A kernel
    without that count shows no waiting: then the clock is all there is."""
    found = {}
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            ran, waited, _ = (thread / "schedstat").read_text().split()
        except (OSError, ValueError):
            continue
        found[pid, int(thread.name)] = (int(ran) * 1e-9, int(waited) * 1e-9)
    return found
