"""Which process a kernel is timed in. It keeps it from workload to workload: a new one costs seconds on a GPU."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

from assay.worker import Pool, Worker

Role = Literal["timed", "watched"]
"""What CUPTI watches is never timed, and the other way round."""
_ALIVE = 32
"""Idle processes at most: each holds a context on the device."""


@dataclass
class Processes:
    pool: Pool
    uncapturable: dict[str, str] = field(default_factory=dict)
    """Why a kernel's calls cannot become a graph, by its name."""
    _idle: dict[tuple[str, Role], Worker] = field(default_factory=dict)

    def take(self, name: str, role: Role, backend: str, mode: str) -> tuple[Worker, bool]:
        """The kernel's own process, and whether it is new."""
        idle = self._idle.pop((name, role), None)
        return (idle, False) if idle else (self.pool.worker(backend, mode), True)

    def leave(self, name: str, role: Role, worker: Worker) -> None:
        """Healthy, and free for the next workload."""
        self._idle[name, role] = worker

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self.retire(())

    def retire(self, wanted: Collection[str]) -> None:
        """End the processes of kernels that will not be timed again, and the oldest of too many."""
        for key in [k for k in self._idle if k[0] not in wanted] + list(self._idle)[:-_ALIVE]:
            if key in self._idle:
                self._idle.pop(key).close()
