"""The process that connects a study to a Ray cluster. It is a separate process because Ray waits for minutes for an
address that does not answer, ignoring signals, prints to standard output, and aborts when the cluster's head is lost.

Ray chooses the nodes and reports when one is lost. Everything started on them ends with this process."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay import provenance
from assay.errors import AssayError, UsageError
from assay.search import ray_nodes
from assay.search.ray_actor import Actor
from assay.search.scheduler import NODE
from assay.worker.fresh import Tick

ROOM = 120.0
"""Seconds to wait for a cluster that has no room for a trial."""
_FAILURES = 10
"""Actors in a row that may die before their first answer."""


@dataclass(frozen=True)
class Member:
    """An actor, which runs one job at a time."""

    actor: Any
    host: str


class Crew:
    """The actors of one study and its pending jobs."""

    def __init__(self, ray: Any, question: dict[str, Any]) -> None:
        self._ray, self._address, self._about = ray, question["address"], question
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        self.device = question["device"] or ("cuda" if any(node.get("GPU") for node in nodes) else "cpu")
        gpu = self.device == "cuda"
        slots, cores = ray_nodes.share(nodes, question["workers"], gpu)
        self._needs = {"CPU": float(cores), "GPU": float(gpu)}
        # The study repeats a lost trial itself and counts the attempts, so Ray must not retry.
        self._actor = self._ray.remote(
            num_cpus=cores, num_gpus=int(gpu), max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )(Actor)
        self._starting: dict[Any, Any] = {}
        """Actors that Ray has not placed yet, by the reference of their first answer."""
        self._idle: list[Member] = []
        self._busy: dict[Any, tuple[Member, dict[str, Any], float]] = {}
        self._jobs: deque[dict[str, Any]] = deque()
        self._failed = 0
        self._last_room = time.monotonic()
        for _ in range(slots):
            self._start()
        while not self._idle:
            self.outcome(1.0)

    @property
    def slots(self) -> int:
        return max(1, len(self._idle) + len(self._busy))

    def submit(self, job: dict[str, Any]) -> None:
        self._jobs.append(job)
        self._hand_out()

    def outcome(self, seconds: float) -> dict[str, Any] | None:
        """Return the next outcome as plain data, or None after that many seconds."""
        deadline = time.monotonic() + seconds
        while True:
            self._hand_out()
            asked = [*self._starting, *self._busy]
            left = max(0.0, deadline - time.monotonic())
            done = self._ray.wait(asked, num_returns=1, timeout=left)[0] if asked else []
            if done and done[0] in self._busy:
                return self._taken(done[0])
            if done:
                self._started(done[0])
            self._verify_room()
            if not done and time.monotonic() >= deadline:
                return None

    def close(self) -> None:
        members = [*self._idle, *(member for member, _, _ in self._busy.values())]
        for actor in [*self._starting.values(), *(member.actor for member in members)]:
            self._end(actor)

    def _hand_out(self) -> None:
        while self._jobs and self._idle:
            member, job = self._idle.pop(0), self._jobs.popleft()
            self._busy[member.actor.do.remote(job["question"], job["seconds"])] = member, job, time.monotonic()

    def _taken(self, done: Any) -> dict[str, Any]:
        member, job, began = self._busy.pop(done)
        try:
            outcome: dict[str, Any] = self._ray.get(done)
        except self._ray.exceptions.RayError as problem:
            self._end(member.actor)
            self._start()  # Ray places it where there is room, now or when a node comes back
            lost = {"how": NODE, "detail": f"lost with its node {member.host}", "output": _last_line(problem)}
            return {"id": job["id"], "seconds": time.monotonic() - began, "lost": lost}
        self._idle.append(member)
        content = outcome.pop("content", None)
        if content is not None:
            outcome["answer"]["file"] = _kept(Path(job["question"]["file"]), content)
        return outcome | {"id": job["id"]}

    def _start(self) -> None:
        about = self._about
        actor = self._actor.remote(about["child"], about["environment"], about["memory"], self._needs, about["folder"])
        self._starting[actor.name.remote()] = actor

    def _started(self, done: Any) -> None:
        actor = self._starting.pop(done)
        try:
            self._idle.append(Member(actor, self._ray.get(done)))
            self._failed = 0
        except self._ray.exceptions.RayError as problem:
            self._failed += 1
            if self._failed > _FAILURES:
                what = f"processes on the cluster end before they begin: {_last_line(problem)}"
                raise AssayError(what, fix="see the logs of the nodes, by default in /tmp/ray") from None
            self._start()

    def _verify_room(self) -> None:
        """Raise UsageError if the cluster has had no room for any trial for too long."""
        if self._idle or self._busy:
            self._last_room = time.monotonic()
        elif time.monotonic() - self._last_room > ROOM:
            what = f"the cluster at {self._address} has had no room for a trial for {ROOM:g} s"
            raise UsageError(what, fix="see `ray status`; the same command goes on where the study stopped")

    def _end(self, actor: Any) -> None:
        with contextlib.suppress(Exception):  # it is gone with its node
            self._ray.kill(actor)


_here: dict[str, Any] = {}
"""`ray`, once connected, and the `crew`."""


def answer(question: dict[str, Any], tick: Tick) -> dict[str, Any]:
    match question["do"]:
        case "connect":
            ray = _here["ray"] = ray_nodes.connect(question["address"])
            ray_nodes.verify(ray_nodes.surveyed(ray), ray_nodes.survey()())
            return {}
        case "open":
            crew = _here["crew"] = Crew(_here["ray"], question)
            return {"slots": crew.slots, "device": crew.device}
        case "submit":
            _here["crew"].submit(question["job"])
            return {}
        case "outcome":
            return {"outcome": _here["crew"].outcome(question["seconds"]), "slots": _here["crew"].slots}
        case "close":
            if "crew" in _here:
                _here.pop("crew").close()
            if "ray" in _here:
                _here.pop("ray").shutdown()  # only the connection; the cluster keeps running
            return {"closed": True}
    raise UsageError(f"'{question['do']}' is nothing that can be asked", fix="connect, open, submit, outcome or close")


def _kept(file: Path, content: bytes) -> str:
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(file)
    return provenance.shown(file)


def _last_line(problem: BaseException) -> str:
    return next((line.strip() for line in reversed(str(problem).splitlines()) if line.strip()), type(problem).__name__)


if __name__ == "__main__":
    from assay.worker.fresh import serve

    serve(answer)
