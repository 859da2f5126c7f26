"""Trials in processes on this machine: one per worker, each served by its own thread.

A process is reused while it answers, because importing torch and reading the data would take longer than most trials.
Limits are enforced from outside: a process that takes too long, or whose resident memory exceeds its limit, is killed
with all its children, and the next trial gets a new one."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Self

import psutil

from assay.search.scheduler import Job, Outcome, Tick
from assay.worker.failure import Refused
from assay.worker.fresh import Fresh
from assay.worker.limits import WorkerLost

CHILD = "assay.search.child"
_LOOK = 0.5
"""Seconds between two checks of the processes' memory."""


class Local:
    def __init__(
        self,
        workers: int,
        environment: Mapping[str, str],
        memory: int,
        tick: Tick = lambda text: None,
        child: str = CHILD,
    ) -> None:
        """`memory`: limit of each process's resident memory, in bytes. `tick` is called with what a process reports it
        is doing. `child`: the module that answers."""
        self._workers = [_Worker(self, lambda: Fresh(child, dict(environment)), tick) for _ in range(workers)]
        self._memory = memory
        self.jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.done: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self.closing = False

    @property
    def slots(self) -> int:
        return len(self._workers)

    def submit(self, job: Job) -> None:
        self.jobs.put(job)

    def outcome(self, seconds: float) -> Outcome | None:
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            with contextlib.suppress(queue.Empty):
                return self.done.get(timeout=max(0.0, min(_LOOK, left)))
            if left <= 0:
                return None
            for worker in self._workers:
                worker.hold_to(self._memory)

    def __enter__(self) -> Self:
        for worker in self._workers:
            worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing = True
        for _worker in self._workers:
            self.jobs.put(None)
        for worker in self._workers:
            worker.end()
            worker.join()


class _Worker(threading.Thread):
    def __init__(self, crew: Local, start: Callable[[], Fresh], tick: Tick) -> None:
        super().__init__(daemon=True)
        self._crew, self._start, self._tick = crew, start, tick
        self._process: Fresh | None = None
        self._too_large = 0
        self._changing = threading.Lock()
        """Held while a process is started or ended, so that none starts after `end` has run."""

    def run(self) -> None:
        while (job := self._crew.jobs.get()) is not None:
            began = time.monotonic()
            answer, refused, lost = None, None, None
            try:
                answer = self._asked(job)
            except Refused as problem:
                refused = problem
            except WorkerLost as problem:
                lost = self._explained(problem)
            except (OSError, ValueError) as problem:  # `end` closed its channel
                lost = WorkerLost("exit", f"ended: {problem}")
            self._crew.done.put(Outcome(job, time.monotonic() - began, answer, refused, lost))
        self._leave()

    def _asked(self, job: Job) -> dict[str, object]:
        with self._changing:
            if self._crew.closing:
                raise WorkerLost("exit", "the study was ended")
            if self._process is None:
                self._process, self._too_large = self._start(), 0
            process = self._process
        try:
            return process.ask(job.question, job.seconds, self._tick)
        except WorkerLost:
            self._leave()
            raise

    def _explained(self, lost: WorkerLost) -> WorkerLost:
        if not self._too_large:
            return lost
        return WorkerLost(
            "memory", f"it had {self._too_large >> 20:,} MiB of memory, more than it may have", lost.output
        )

    def hold_to(self, memory: int) -> None:
        """Kill the process if its resident memory exceeds `memory` bytes."""
        process = self._process
        if process is None:
            return
        with contextlib.suppress(psutil.Error):
            resident: int = psutil.Process(process.pid).memory_info().rss
            if resident > memory:
                self._too_large = resident
                process.kill()

    def end(self) -> None:
        """Kill the process from another thread; its trial is given up."""
        with self._changing:
            if self._process is not None:
                self._process.kill()

    def _leave(self) -> None:
        with self._changing:
            if self._process is not None:
                self._process.__exit__()
                self._process = None
