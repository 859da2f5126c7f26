"""The processes of one kernel on one workload: one that is timed, and one that CUPTI watches."""

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
    """The name of its processes: kernels in two files may have the same address."""
    language: str
    mode: str
    device: str
    fill: Callable[[Worker], None]
    """Puts the inputs into a process's memory."""
    held: dict[Role, Worker] = field(default_factory=dict)
    _asked: dict[Role, Request[Any]] = field(default_factory=dict)
    """Requests that a process has not yet answered."""

    def open(self, *roles: Role) -> None:
        """Start these processes without waiting for them."""
        for role in roles:
            if self._seat(role):
                self.tell(role, Watch() if role == "watched" else Open(self.device))

    def worker(self, role: Role) -> Worker:
        """Return a process with the inputs in its memory; start one if needed."""
        if role not in self.held:
            if self._seat(role) and role == "watched":
                self.held[role].ask(Watch(), self.processes.seconds)
            self.fill(self.held[role])
        return self.held[role]

    def tell(self, role: Role, request: Request[Any]) -> None:
        """Send a request without waiting; `hear` returns the answer. Close a process that takes no request."""
        try:
            self.held[role].tell(request)
            self._asked[role] = request
        except WorkerLost:
            self.close(role)

    def hear(self, role: Role) -> Answer | WorkerLost | Refused | None:
        """Return the answer to the pending request, or the failure, after closing the process; None if no request is
        pending."""
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
        """Return the healthy processes for the next workload."""
        for role, worker in self.held.items():
            self.processes.leave(self.identity, role, worker)
        self.held = {}

    def _seat(self, role: Role) -> bool:
        """Take a process and return whether it is new."""
        self.held[role], new = self.processes.take(self.identity, role, self.language, self.mode)
        return new
