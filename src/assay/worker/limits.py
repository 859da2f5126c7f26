"""The limits of a worker in answering one question, and the exception for a worker that did not answer."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import Literal

import psutil

Phase = Literal["import", "compile", "run"]
"""What a worker does: importing the kernel's file, compiling (whenever its language does), or running the kernel."""
PATIENCE = 10.0
"""The wall time allowed as a multiple of a limit: a machine so busy has no room for more."""
LEAST_COMPILING = 30.0
"""The least seconds for importing or compiling, however few a kernel may run."""


@dataclass(frozen=True)
class Limits:
    seconds: float = 60.0
    """Seconds of the kernel's own time for one question (one workload). Time in which its process waited for a
    processor does not count, nor does compiling."""
    memory: int = field(default_factory=lambda: int(psutil.virtual_memory().total * 0.6))
    """Resident bytes of a worker and its children."""
    output: int = 1 << 20
    """Bytes a kernel may print in answer to one question."""
    compile: float = 0.0
    """Seconds of its own time for each import of a kernel's file and for compiling in answer to one question; 0: ten
    times `seconds`, 30 at least and 300 at most."""
    wall: float = 300.0
    """The least wall time allowed for any phase, in seconds; ten times the phase's own limit is allowed in any case."""

    def of(self, phase: Phase, seconds: float | None = None) -> tuple[float, float]:
        """Return the seconds of own time and of wall time. `seconds` replaces the limit of a kernel's run."""
        compiling = self.compile or min(300.0, max(LEAST_COMPILING, 10 * self.seconds))
        own = compiling if phase != "run" else self.seconds if seconds is None else seconds
        return own, max(self.wall, PATIENCE * own)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def how_ended(code: int) -> tuple[str, str]:
    """Return `how` of `WorkerLost`, and a description, for a process that ended before it answered, from its exit code
    (less than 0: a signal)."""
    if code >= 0:
        return "exit", f"the process ended itself with exit code {code} before answering"
    hint = " (the system may have run out of memory)" if -code == signal.SIGKILL else ""
    return "crash", f"the process died of {signal_name(-code)}{hint}"


class WorkerLost(Exception):
    """The worker ended before it answered.

    `how` names what ended it: `timeout`, `crash`, `exit`, `memory`, `flood`, `channel` (what it sent was no answer),
    `start` (it never started), or `room` (the machine has no shared memory left)."""

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
        """What the worker was doing."""
        self.own_seconds = own_seconds
        """Seconds of processor time of its whole process tree in answer to this question."""
        self.wall_seconds = wall_seconds
        """Seconds of wall time since the question was asked."""
        self.starved = starved
        """Whether it is a timeout of wall time alone: the machine was too busy to give the kernel its own time."""

    def last_words(self) -> str:
        """Return what ended the process, and the last line it printed; that line says nothing after a timeout."""
        last = self.output.strip().splitlines()[-1:] if self.how != "timeout" else []
        return "; ".join([self.detail, *last])

    @property
    def blameless(self) -> bool:
        """True if the loss is not the kernel's fault: its compiler was slow, or the machine busy or out of memory."""
        return self.how == "room" or (self.how == "timeout" and (self.starved or self.phase == "compile"))
