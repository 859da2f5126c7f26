"""What a worker may use to answer one question, and the exception that says it did not answer."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import Literal

import psutil

Phase = Literal["import", "compile", "run"]
"""What a worker is doing: importing the kernel's file, compiling (at whatever moment its language does so), or running
the kernel."""
PATIENCE = 10.0
"""By the clock, times as long as a limit: a machine so busy has no room for more."""
LEAST_COMPILING = 30.0
"""Seconds for importing or compiling, however few a kernel may run."""


@dataclass(frozen=True)
class Limits:
    seconds: float = 60.0
    """Of the kernel's own time for one question (one workload). Time in which its process wanted a processor and got
    none does not count, nor does compiling."""
    memory: int = field(default_factory=lambda: int(psutil.virtual_memory().total * 0.6))
    """Resident bytes of a worker and its children."""
    output: int = 1 << 20
    """Bytes a kernel may print in answer to one question."""
    compile: float = 0.0
    """Of its own time, for each import of a kernel's file and for compiling in answer to one question; 0: ten times
    `seconds`, 30 at least and 300 at most."""
    wall: float = 300.0
    """By the clock, for any phase at least; never less than ten times the phase's own limit."""

    def of(self, phase: Phase, seconds: float | None = None) -> tuple[float, float]:
        """Seconds of its own time and by the clock. `seconds` stands in for the limit of a kernel's run."""
        compiling = self.compile or min(300.0, max(LEAST_COMPILING, 10 * self.seconds))
        own = compiling if phase != "run" else self.seconds if seconds is None else seconds
        return own, max(self.wall, PATIENCE * own)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def how_ended(code: int) -> tuple[str, str]:
    """Of a process that ended before it answered, from its exit code (less than 0: a signal): `how` of `WorkerLost`,
    and in words."""
    if code >= 0:
        return "exit", f"the process ended itself with exit code {code} before answering"
    hint = " (the system may have run out of memory)" if -code == signal.SIGKILL else ""
    return "crash", f"the process died of {signal_name(-code)}{hint}"


class WorkerLost(Exception):
    """The worker did not live to answer.

    `how` names what ended it: `timeout`, `crash`, `exit`, `memory`, `flood`, `channel` (what it sent was no answer), or
    `start` (there never was one)."""

    def __init__(
        self,
        how: str,
        detail: str,
        output: str = "",
        *,
        phase: Phase = "run",
        own_seconds: float = 0.0,
        wall_seconds: float = 0.0,
        starved: bool = False,
    ) -> None:
        super().__init__(detail)
        self.how, self.detail, self.output = how, detail, output
        self.phase: Phase = phase
        """What it was doing."""
        self.own_seconds = own_seconds
        """Processor time of its whole process tree in answer to this question."""
        self.wall_seconds = wall_seconds
        """By the clock, since the question was asked."""
        self.starved = starved
        """A timeout by the clock alone: the machine was too busy to give the kernel its own time."""

    def last_words(self) -> str:
        """What ended the process, and the last line it printed; where it took too long, that line says nothing."""
        last = self.output.strip().splitlines()[-1:] if self.how != "timeout" else []
        return "; ".join([self.detail, *last])

    @property
    def blameless(self) -> bool:
        """Whether the loss says nothing about the kernel: its compiler took too long, or the machine was too busy."""
        return self.how == "room" or (self.how == "timeout" and (self.starved or self.phase == "compile"))
