"""The parent's side of GPU probes: a child process runs them; if it dies, another runs the remaining ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from assay.machine.probe import Measured
from assay.machine.proof import Finding
from assay.worker.fresh import Fresh, Refused
from assay.worker.limits import WorkerLost
from assay.worker.messages import Answer, Request
from assay.worker.questions import Summary

LIMIT = 180.0
"""Seconds that one probe may take, including the build."""


@dataclass(frozen=True)
class Opened(Answer):
    facts: dict[str, float]
    """Properties that are not measured (assay.machine.model)."""


@dataclass(frozen=True)
class Open(Request[Opened], answered_by="assay.machine.child:opened"):
    """Open the device."""


@dataclass(frozen=True)
class Outcome(Answer):
    """The outcome of one probe."""

    measured: Measured | None = None
    why: str = ""
    """The reason for a missing measurement."""
    traceback: str = ""
    proof: dict[str, Finding] = field(default_factory=dict)
    """The findings on the machine code of its instances."""
    artifacts: list[Summary] = field(default_factory=list)
    lost: bool = False
    """Whether the process or its device is unusable."""


@dataclass(frozen=True)
class Measure(Request[Outcome], answered_by="assay.machine.child:measured"):
    probe: str


def outcomes(keys: list[str], limit: float = LIMIT, child: str = "") -> Iterator[tuple[str, Outcome] | Opened]:
    """Yield the key and outcome of each probe when it is finished, and the facts whenever a child has opened the
    device. A new child takes over the probes that a lost one had not begun. If it cannot open the device, all of them
    have failed."""
    waiting = list(keys)
    while waiting:
        with Fresh(child) if child else Fresh() as process:
            try:
                yield process.ask(Open(), limit)
            except (Refused, WorkerLost) as problem:
                why = problem.last_words() if isinstance(problem, WorkerLost) else str(problem)
                yield from ((key, Outcome(why=why)) for key in waiting)
                return
            yield from _measured(process, waiting, limit)


def _measured(process: Fresh, waiting: list[str], limit: float) -> Iterator[tuple[str, Outcome]]:
    """Yield the outcomes of the waiting probes until none is left or the process is lost."""
    while waiting:
        key = waiting.pop(0)
        try:
            outcome = process.ask(Measure(key), limit)
        except WorkerLost as lost:
            outcome = Outcome(why=lost.last_words(), lost=True)
        yield key, outcome
        if outcome.lost:
            return
