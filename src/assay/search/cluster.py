"""Trials on a Ray cluster. Ray chooses the nodes and tells when one is lost; a job there is done in a process of its
own, as on this machine. The study itself stays where the command runs."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from assay import provenance
from assay.errors import AssayError, UsageError
from assay.search import visit
from assay.search.local import CHILD
from assay.search.node import Node
from assay.search.scheduler import NODE, Job, Outcome
from assay.worker.failure import Refused
from assay.worker.fresh import Fresh
from assay.worker.limits import WorkerLost

_KNOCK = 5.0
"""Seconds for a connection to the address."""
_VISIT = 90.0
"""Seconds for connecting, and for what every node has to say."""
_ROOM = 120.0
"""Seconds in which a cluster that has no room for a trial may get some."""


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
        """`workers`: trials at a time, at most; None: as many as the cluster has cores, or GPUs. `device`: cpu or cuda;
        empty: cuda where a node has a GPU. `memory`: bytes that one process may have resident; 0: its share."""
        self._address, self._workers, self._memory = address, workers, memory
        self._environment, self._child = dict(environment or {}), child
        self.device = device
        self._starting: dict[Any, Any] = {}
        """Actors that Ray is still looking a place for, by what they will answer first."""
        self._idle: list[_Member] = []
        self._busy: dict[Any, tuple[_Member, Job, float]] = {}
        self._jobs: deque[Job] = deque()
        self._failed = 0
        self._last_seen = time.monotonic()

    @property
    def slots(self) -> int:
        return max(1, len(self._idle) + len(self._busy))

    def submit(self, job: Job) -> None:
        self._jobs.append(job)
        self._hand_out()

    def outcome(self, seconds: float) -> Outcome | None:
        deadline = time.monotonic() + seconds
        while True:
            self._hand_out()
            waited = max(0.0, deadline - time.monotonic())
            asked = [*self._starting, *self._busy]
            done = self._ray.wait(asked, num_returns=1, timeout=waited)[0] if asked else []
            if done and done[0] in self._busy:
                return self._taken(done[0])
            if done:
                self._started(done[0])
            self._verify_room()
            if not done and time.monotonic() >= deadline:
                return None

    def __enter__(self) -> Self:
        if self._address != "local":
            verify(roll_call(self._address))
        self._ray = visit.connect(self._address)
        try:
            nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
            self.device = self.device or ("cuda" if any(node.get("GPU") for node in nodes) else "cpu")
            gpu = self.device == "cuda"
            slots, cores = share(nodes, self._workers, gpu)
            self._needs = {"CPU": float(cores), "GPU": float(gpu)}
            # A lost trial is run again by the study, which counts how often: Ray must not do so behind its back.
            self._actor = self._ray.remote(
                num_cpus=cores, num_gpus=int(gpu), max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
            )(Node)
            for _ in range(slots):
                self._start()
            while not self._idle:
                self.outcome(1.0)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        actors = [*self._starting.values(), *(m.actor for m in self._idle), *(m.actor for m, *_ in self._busy.values())]
        for actor in actors:
            self._end(actor)
        self._starting, self._idle, self._busy = {}, [], {}
        self._jobs.clear()
        self._ray.shutdown()  # this connection; the cluster runs on, unless it is `local`, and ours

    def _hand_out(self) -> None:
        while self._jobs and self._idle:
            member, job = self._idle.pop(0), self._jobs.popleft()
            self._busy[member.actor.do.remote(job.question, job.seconds)] = member, job, time.monotonic()

    def _taken(self, done: Any) -> Outcome:
        member, job, began = self._busy.pop(done)
        try:
            plain = self._ray.get(done)
        except self._ray.exceptions.RayError as problem:
            self._end(member.actor)
            self._start()  # wherever there is room, now or when a node comes back
            lost = WorkerLost(NODE, f"lost with its node {member.host}: {_first_line(problem)}")
            return Outcome(job, time.monotonic() - began, lost=lost)
        self._idle.append(member)
        if "refused" in plain:
            return Outcome(job, plain["seconds"], refused=Refused(plain["refused"]))
        if "lost" in plain:
            return Outcome(job, plain["seconds"], lost=WorkerLost(**plain["lost"]))
        answer = plain["answer"]
        if plain["content"] is not None:
            answer["file"] = _kept(Path(job.question["file"]), plain["content"])
        return Outcome(job, plain["seconds"], answer)

    def _start(self) -> None:
        actor = self._actor.remote(self._child, self._environment, self._memory, self._needs, str(Path.cwd()))
        self._starting[actor.name.remote()] = actor

    def _started(self, done: Any) -> None:
        actor = self._starting.pop(done)
        try:
            self._idle.append(_Member(actor, self._ray.get(done)))
        except self._ray.exceptions.RayError as problem:
            self._failed += 1
            if self._failed > _FAILURES:
                raise AssayError(
                    f"processes on the cluster end before they begin: {_last_line(problem)}",
                    fix="see the logs of the nodes, in /tmp/ray/session_latest/logs",
                ) from None
            self._start()

    def _verify_room(self) -> None:
        """Not forever without a process anywhere."""
        if self._idle or self._busy:
            self._last_seen = time.monotonic()
        elif time.monotonic() - self._last_seen > _ROOM:
            raise UsageError(
                f"the cluster at {self._address} has had no room for a trial for {_ROOM:g} s",
                fix="see `ray status`; the study goes on where it stopped when the same command is given again",
            )

    def _end(self, actor: Any) -> None:
        with contextlib.suppress(Exception):  # gone with its node, or the whole cluster is
            self._ray.kill(actor)


_FAILURES = 10
"""Actors that may die before they have said a word."""


@dataclass(frozen=True)
class _Member:
    actor: Any
    host: str


def roll_call(address: str) -> list[dict[str, str]]:
    """What each node has installed. A UsageError where there is no cluster, within two minutes."""
    visit.package()
    _knock(address)
    with Fresh("assay.search.visit") as process:
        try:
            return list(process.ask({"address": address}, _VISIT)["nodes"])
        except Refused as problem:
            raise problem.wrong_use or problem from None
        except WorkerLost as lost:
            raise visit.unreachable(address, lost.last_words()) from None


def _knock(address: str) -> None:
    """Whether anybody listens there, which takes Ray minutes to find out."""
    host, _, port = address.removeprefix("ray://").partition("/")[0].rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host.strip("[]"), int(port)), _KNOCK).close()
        except (OSError, OverflowError) as problem:
            raise visit.unreachable(address, str(problem)) from None


def verify(nodes: Sequence[Mapping[str, str]]) -> None:
    """Refuse nodes with other versions than here: they would understand other questions, or give other answers."""
    here = visit.survey()()
    fix = f"pip install kernel-assay=={here['assay']}"
    for node in nodes:
        host = node["host"]
        if node["python"].split(".")[:2] != here["python"].split(".")[:2]:
            what = f"{host} has Python {node['python']}, this machine {here['python']}"
            raise UsageError(what, fix="install the same Python on all nodes, with Ray and Assay in it")
        if not node["assay"]:
            raise UsageError(f"{host} has no Assay that its Ray can import", fix=f"there: {fix}")
        if node["assay"] != here["assay"]:
            what = f"{host} has Assay {node['assay']}, this machine {here['assay']}"
            raise UsageError(what, fix=f"there: {fix}, then restart its Ray")
        if node["source"] != here["source"]:
            what = f"{host} has other source files of Assay {here['assay']} than this machine"
            raise UsageError(what, fix="install the same commit there, then restart its Ray")


def share(nodes: Sequence[Mapping[str, float]], workers: int | None, gpu: bool) -> tuple[int, int]:
    """How many trials run at a time, and the cores of each: as many as still let all of them run at once. On GPUs each
    trial has one to itself."""

    def fit(cores: int) -> int:
        places = [(int(node.get("CPU", 0)) // cores, int(node.get("GPU", 0))) for node in nodes]
        return sum(min(cpus, gpus) if gpu else cpus for cpus, gpus in places)

    if not fit(1):
        what = "GPU with a core beside it" if gpu else "core"
        raise UsageError(
            f"the cluster has no {what}", fix="add a node: ray start --address=HOST:PORT" + " --num-gpus=1" * gpu
        )
    slots = min(workers or fit(1), fit(1))
    most = max(int(node.get("CPU", 0)) for node in nodes)
    return slots, max(cores for cores in range(1, most + 1) if fit(cores) >= slots)


def _kept(file: Path, content: bytes) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(file)
    return provenance.shown(file)


def _first_line(problem: BaseException) -> str:
    return next((line.strip() for line in str(problem).splitlines() if line.strip()), type(problem).__name__)


def _last_line(problem: BaseException) -> str:
    return next((line.strip() for line in reversed(str(problem).splitlines()) if line.strip()), type(problem).__name__)
