"""Where the trials of a study are done. A study hands out jobs and takes outcomes back in any order; whether they are
done in processes of this machine or elsewhere is the business of whoever implements `Scheduler`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self

from assay.worker.failure import Refused
from assay.worker.limits import WorkerLost

Tick = Callable[[str], None]
NODE = "node"
"""`how` of a WorkerLost whose whole machine is gone."""


@dataclass(frozen=True)
class Job:
    """One question to a process of `assay.search.child`."""

    id: int
    question: dict[str, Any]
    seconds: float
    """After which its process is ended."""


@dataclass(frozen=True)
class Outcome:
    """An answer, or why there is none."""

    job: Job
    seconds: float
    """Between being begun and being done."""
    answer: dict[str, Any] | None = None
    refused: Refused | None = None
    """The process is alive, and its answer is an exception."""
    lost: WorkerLost | None = None
    """The process is gone: it crashed or was killed, took too long or too much memory."""


class Scheduler(Protocol):
    @property
    def slots(self) -> int:
        """How many jobs are done at the same time."""
        ...

    def submit(self, job: Job) -> None: ...

    def outcome(self, seconds: float) -> Outcome | None:
        """The next that is done; None where there is none after so many seconds."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None:
        """End all processes, and whatever they are doing."""
        ...
