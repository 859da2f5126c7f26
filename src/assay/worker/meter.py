"""Measures the time that a process really had: wall time less the time in which it waited for a processor."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

_SHARE = 0.05
"""The most of the time that readings may take: they read the process table."""
SAMPLE_EVERY = 0.25


@dataclass(frozen=True)
class Reading:
    wall: float
    """Seconds by the clock."""
    own: float
    """Seconds of processor time of the process and all it started."""
    waited: float
    """Seconds in which its threads together were ready to run and did not."""

    def __add__(self, later: Reading) -> Reading:
        return Reading(self.wall + later.wall, self.own + later.own, self.waited + later.waited)

    def charged(self) -> float:
        """Return the seconds that count. A sleeping process is charged wall time, since nothing keeps it from
        answering. A process that shares its processors is charged in proportion to what it got of them. Threads that
        only keep each other waiting are charged for the processors they used."""
        wanted = self.own + self.waited
        if wanted <= 0:
            return self.wall
        starved = min(self.wall, wanted) * self.waited / wanted
        return max(self.wall - starved, self.own / (os.cpu_count() or 1))


class Meter:
    """Measures one process and its descendants from now on. Threads that have ended count with their last reading."""

    def __init__(self, pid: int, before: Meter | None = None) -> None:
        """`before` is the meter that this one replaces, from which it takes the time of the next reading."""
        self._pid = pid
        self._began = time.monotonic()
        self._next: float = before._next if before else self._began + SAMPLE_EVERY
        self._last = _threads(pid)
        self._first = dict(self._last)
        self._looked = False
        self.resident = 0
        """Resident bytes of all of them together, at the last reading."""

    @property
    def due(self) -> bool:
        """Whether enough time has passed for another reading."""
        return time.monotonic() >= self._next

    def read(self) -> Reading:
        """Take a reading of all processes."""
        began = time.monotonic()
        self._look()
        self._next = time.monotonic() + max(SAMPLE_EVERY, (time.monotonic() - began) / _SHARE)
        return self._reading()

    def glance(self) -> Reading:
        """Take a reading of the process alone, which is cheap enough for a change of phase."""
        self._last |= _threads(self._pid)
        return self._reading()

    def _reading(self) -> Reading:
        used = [(b[0] - a[0], b[1] - a[1]) for k, b in self._last.items() for a in (self._first.get(k, (0.0, 0.0)),)]
        return Reading(time.monotonic() - self._began, sum(u[0] for u in used), sum(u[1] for u in used))

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
                seen = _threads(one.pid) or {(one.pid, 0): (sum(one.cpu_times()[:2]), 0.0)}
            except (psutil.Error, OSError):
                continue  # it has ended meanwhile
            self._last |= seen
            if not self._looked:  # what children did before they were first seen may be long ago
                self._first = seen | self._first
        self._looked = True


def _threads(pid: int) -> dict[tuple[int, int], tuple[float, float]]:
    """Return, by process and thread, the seconds it ran and the seconds it waited for a processor, as Linux counts
    them; empty if Linux does not count them."""
    times = {}
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:  # it has ended
        return {}
    for thread in threads:
        try:
            ran, waited, _ = (thread / "schedstat").read_text().split()
        except (OSError, ValueError):
            continue
        times[pid, int(thread.name)] = (int(ran) * 1e-9, int(waited) * 1e-9)
    return times
