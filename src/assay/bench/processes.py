"""The processes that kernels are timed in. A kernel keeps its process from workload to workload, since starting one
takes seconds on a GPU."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal, Self

import psutil

from assay.bench.spent import Spent
from assay.worker import Pool, Worker

Role = Literal["timed", "watched"]
"""`watched` is a process that CUPTI watches; it is never timed."""
_ALIVE = 32
"""The most idle processes that are kept; each holds a context on the device."""
MOST_BYTES = 8 << 30
"""The most bytes for the buffers of one kernel, however much memory is free."""


def free_bytes() -> int:
    """Return the bytes that the buffers of one kernel may take: a quarter of the free memory, at most `MOST_BYTES`."""
    return min(MOST_BYTES, psutil.virtual_memory().available // 4)


@dataclass
class Processes:
    """Idle processes, and the settings that all kernels of a run share."""

    pool: Pool
    seconds: float
    """The time limit of one round."""
    threads: int
    most_bytes: int
    """The most bytes that the buffers of one kernel may take."""
    samples: int = 5
    """Samples of cold calls in a round, at most."""
    others: int = 5
    """Samples of each other kind of time in a round, at most."""
    round_seconds: float = float("inf")
    """Seconds of the budget for one round of a kernel."""
    spent: Spent = field(default_factory=Spent)
    uncapturable: dict[str, str] = field(default_factory=dict)
    """Why a kernel's calls cannot be captured into a graph, by the kernel's identity."""
    first_calls: dict[str, float] = field(default_factory=dict)
    """Seconds of a kernel's first call in this run, which builds it, by the kernel's identity."""
    _idle: dict[tuple[str, Role], Worker] = field(default_factory=dict)

    def take(self, identity: str, role: Role, backend: str, mode: str) -> tuple[Worker, bool]:
        """Return the kernel's own process, and whether the process is new."""
        idle = self._idle.pop((identity, role), None)
        return (idle, False) if idle else (self.pool.worker(backend, mode), True)

    def leave(self, identity: str, role: Role, worker: Worker) -> None:
        """Keep a healthy process for the next workload."""
        self._idle[identity, role] = worker

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.retire(())

    def retire(self, wanted: Collection[str]) -> None:
        """End the processes of kernels that will not be timed again, and the oldest of those beyond the limit."""
        for key in {*(k for k in self._idle if k[0] not in wanted), *list(self._idle)[:-_ALIVE]}:
            self._idle.pop(key).close()
