"""The interface between a study and the place where its trials run. A study submits jobs and takes outcomes back in any
order; the implementation of `Scheduler` decides whether they run in processes on this machine or elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self

from assay.worker.failure import Refused
from assay.worker.limits import WorkerLost

Tick = Callable[[str], None]
NODE = "node"
"""`how` of a WorkerLost whose machine is gone."""


@dataclass(frozen=True)
class Job:
    """One question to a process of `assay.search.child`."""

    id: int
    question: dict[str, Any]
    seconds: float
    """Time limit, after which its process is killed."""


@dataclass(frozen=True)
class Outcome:
    """An answer, or the reason why there is none."""

    job: Job
    seconds: float
    """Seconds from start to end."""
    answer: dict[str, Any] | None = None
    refused: Refused | None = None
    """An exception raised by the process, which is still alive."""
    lost: WorkerLost | None = None
    """The process is gone: it crashed, was killed, took too long or took too much memory."""


class Scheduler(Protocol):
    @property
    def slots(self) -> int:
        """Number of concurrent jobs."""
        ...

    def submit(self, job: Job) -> None: ...

    def outcome(self, seconds: float) -> Outcome | None:
        """Return the next outcome, or None if there is none after that many seconds."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None:
        """End all processes, including running jobs."""
        ...
