"""Trials on a Ray cluster. The study stays where the command runs; `ray_driver`, a separate process there, connects to
the cluster, and `ray_actor` runs the jobs on its nodes, each in a process of its own as on this machine."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from assay.errors import AssayError, UsageError
from assay.search.local import CHILD
from assay.search.ray_nodes import unreachable
from assay.search.scheduler import Job, Outcome
from assay.worker.failure import Refused
from assay.worker.fresh import Fresh
from assay.worker.limits import WorkerLost

DRIVER = "assay.search.ray_driver"
_KNOCK = 5.0
"""Seconds for a TCP connection to the address."""
_CONNECT = 90.0
"""Seconds for connecting to Ray and surveying every node."""
_ROOM = 240.0
"""Seconds for the first process on a node to start; the driver gives up earlier."""
_ANSWER = 60.0
"""Seconds for any other answer, on top of the time the question itself waits."""
_CLOSE = 15.0


class Cluster:
    def __init__(
        self,
        address: str,
        workers: int | None = None,
        device: str = "",
        memory: int = 0,
        environment: Mapping[str, str] | None = None,
        child: str = CHILD,
    ) -> None:
        """`workers`: maximum number of concurrent trials; None: one per core, or per GPU. `device`: cpu or cuda; empty:
        cuda if any node has a GPU. `memory`: limit of a process's resident memory in bytes; 0: its share of the node's.
        """
        self.slots, self.device, self._address = 1, device, address
        self._about = {
            "address": address,
            "workers": workers,
            "device": device,
            "memory": memory,
            "environment": dict(environment or {}),
            "child": child,
            "folder": str(Path.cwd()),
        }
        self._jobs: dict[int, Job] = {}

    def submit(self, job: Job) -> None:
        self._jobs[job.id] = job
        self._ask({"do": "submit", "job": vars(job)})

    def outcome(self, seconds: float) -> Outcome | None:
        told = self._ask({"do": "outcome", "seconds": seconds}, seconds + _ANSWER)
        self.slots, outcome = told["slots"], told["outcome"]
        if outcome is None:
            return None
        refused, lost = outcome.get("refused"), outcome.get("lost")
        return Outcome(
            self._jobs.pop(outcome["id"]),
            outcome["seconds"],
            outcome.get("answer"),
            Refused(refused) if refused else None,
            WorkerLost(**lost) if lost else None,
        )

    def __enter__(self) -> Self:
        if find_spec("ray") is None:
            raise UsageError("a search on a cluster needs Ray", fix="pip install 'kernel-assay[cluster]'")
        if self._address == "local":
            what = "'local' is no cluster: Ray would start one on this machine"
            raise UsageError(what, fix="--workers N for trials here, --ray auto for the cluster of this machine")
        _knock(self._address)
        self._driver = Fresh(DRIVER)
        try:
            self._driver.ask({"do": "connect", "address": self._address}, _CONNECT)
            told = self._driver.ask({"do": "open", **self._about}, _ROOM)
        except BaseException as problem:
            self.__exit__()
            if isinstance(problem, Refused):
                raise problem.wrong_use or problem from None
            if isinstance(problem, WorkerLost):
                raise unreachable(self._address, problem.last_words()) from None
            raise
        self.slots, self.device = told["slots"], told["device"]
        return self

    def __exit__(self, *_: object) -> None:
        """End what was started on the cluster. If the driver process no longer answers, Ray does this once it notices
        that the process is gone."""
        with contextlib.suppress(Refused, WorkerLost, OSError, ValueError):
            # After Ctrl-C the answer to the previous question may arrive first.
            while "closed" not in self._driver.ask({"do": "close"}, _CLOSE):
                pass
        self._driver.__exit__()

    def _ask(self, question: dict[str, Any], seconds: float = _ANSWER) -> dict[str, Any]:
        try:
            return self._driver.ask(question, seconds)
        except Refused as problem:
            raise problem.wrong_use or problem from None
        except WorkerLost as lost:
            what = f"the connection to the cluster at {self._address} is lost: {lost.last_words()}"
            fix = "start the cluster again; the same command goes on where the study stopped"
            raise AssayError(what, fix=fix) from None


def _knock(address: str) -> None:
    """Raise UsageError if nothing listens at the address: Ray takes minutes to find out."""
    host, _, port = address.removeprefix("ray://").partition("/")[0].rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host.strip("[]"), int(port)), _KNOCK).close()
        except (OSError, OverflowError) as problem:
            raise unreachable(address, str(problem)) from None
