"""The processes of one kernel on one workload: one that is timed, and one that the device's own recorder watches."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from assay.bench.processes import Processes, Role
from assay.worker import Worker, WorkerLost
from assay.worker.failure import Refused
from assay.worker.messages import Answer, Request
from assay.worker.questions import Open, Watch


@dataclass
class Seats:
    processes: Processes
    identity: str
    """The name of its processes: two files may have a kernel of the same address."""
    language: str
    mode: str
    device: str
    fill: Callable[[Worker], None]
    """Puts the inputs into a process's memory."""
    held: dict[Role, Worker] = field(default_factory=dict)
    _asked: dict[Role, Request[Any]] = field(default_factory=dict)
    """Requests that a process has not answered yet."""

    def open(self, *roles: Role) -> None:
        """Start these processes without waiting for them."""
        for role in roles:
            if self._seat(role):
                self.tell(role, Watch() if role == "watched" else Open(self.device))

    def worker(self, role: Role) -> Worker:
        """Return a process with the inputs in its memory, a new one if need be."""
        if role not in self.held:
            if self._seat(role) and role == "watched":
                self.held[role].ask(Watch(), self.processes.seconds)
            self.fill(self.held[role])
        return self.held[role]

    def tell(self, role: Role, request: Request[Any]) -> None:
        """Ask without waiting; `hear` gives the answer. A process that takes no question is gone."""
        try:
            self.held[role].tell(request)
            self._asked[role] = request
        except WorkerLost:
            self.close(role)

    def hear(self, role: Role) -> Answer | WorkerLost | Refused | None:
        """Return the answer to what a process was told, or its failure, after which the process is gone; None where it
        was not told anything."""
        request = self._asked.pop(role, None)
        if request is None or role not in self.held:
            return None
        try:
            answer: Answer = self.held[role].hear(request, self.processes.seconds)
            return answer
        except (WorkerLost, Refused) as problem:
            self.close(role)
            return problem

    def close(self, role: Role) -> None:
        if worker := self.held.pop(role, None):
            worker.close()

    def leave(self) -> None:
        """Leave the healthy processes to the next workload."""
        for role, worker in self.held.items():
            self.processes.leave(self.identity, role, worker)
        self.held = {}

    def _seat(self, role: Role) -> bool:
        """Take a process; return whether it is new."""
        self.held[role], new = self.processes.take(self.identity, role, self.language, self.mode)
        return new
