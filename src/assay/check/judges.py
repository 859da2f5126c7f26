"""Judges jobs in several processes, each forked from this one, which distributes the work and needs little memory.

A process that dies loses no records: its unfinished jobs are repeated one at a time in another process, and a job that
ends that process too gets a record that says so. Each process shares only a pipe, so its death cannot block another."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from assay.check.crew import Share, Task, Through, Verdict, languages, threads, unfinished
from assay.lazy import torch
from assay.record import Record, Status
from assay.worker import Pool
from assay.worker.forking import ended_how

_FORK = multiprocessing.get_context("fork")
_TRY_FOR = 5.0
"""Seconds for a child to show that it can compute, which takes milliseconds."""


class _Judge:
    """One child process and its unfinished tasks."""

    def __init__(self, tasks: list[Task], pool: Callable[[], Pool], settings: Share, wide: int, others: list[_Judge]):
        self._tasks, self.failed = {t.index: t for t in tasks}, ""
        self.connection, child_end = _FORK.Pipe()
        open_ends = [self.connection, *(o.connection for o in others)]
        self.process = _FORK.Process(target=_judge, args=(tasks, pool, settings, wide, child_end, open_ends))
        self.process.start()
        child_end.close()
        self.left: dict[int, set[int]] = {}

    def give(self, task: int | None) -> None:
        """Send a task; None tells one of its threads to end."""
        if task is not None:
            self.left[task] = set(self._tasks[task].places)
        with contextlib.suppress(OSError):  # `receive` notices a dead process
            self.connection.send(task)

    def receive(self) -> Verdict | Through | None:
        """Return its next message; None if the process has ended."""
        try:
            item: Verdict | Through | str = self.connection.recv()
        except (EOFError, OSError):
            return None
        if isinstance(item, str):
            self.failed = item
            return self.receive()
        if isinstance(item, Verdict):
            self.left[item.task].discard(item.place)
        return item

    def unfinished(self) -> list[Task]:
        return [Task(i, self._tasks[i].group, tuple(sorted(places))) for i, places in self.left.items() if places]

    def how_ended(self) -> str:
        self.process.join(5)
        code = self.process.exitcode
        if self.failed or code is None:
            return self.failed or "closed its pipe"
        return ended_how(-code if code < 0 else code << 8)

    def end(self) -> None:
        self.process.terminate()

    def close(self) -> None:
        self.process.join(30)
        if self.process.is_alive():
            self.process.kill()
        self.connection.close()


def forks() -> bool:
    """True if a child of this process can compute. A child has one thread and does not need the threads of PyTorch that
    a fork loses; but a kernel's file may have started others, so a child tries."""
    if "torch" not in sys.modules:
        return True
    child = _FORK.Process(target=_computes)
    child.start()
    child.join(_TRY_FOR)
    child.kill()
    child.join()
    return child.exitcode == 0


def _computes() -> None:
    torch.set_num_threads(1)
    torch.ones(1 << 20).double().sum()
    torch.ones(64, 64).matmul(torch.ones(64, 64))


def judged(tasks: list[Task], pool: Callable[[], Pool], settings: Share, wide: int, judges: int) -> Iterator[Record]:
    """Yield records as they become ready, from `judges` processes with `wide` threads in all."""
    waiting = [task.index for task in reversed(tasks)]
    crew: list[_Judge] = []
    repeat: list[Task] = []

    def next_task() -> int | None:
        return waiting.pop() if waiting else None

    def start(width: int) -> None:
        crew.append(_Judge(tasks, pool, settings, width, crew))
        for _ in range(width):
            crew[-1].give(next_task())

    try:
        for i in range(judges):
            start(wide // judges + (i < wide % judges))
        while crew:
            for connection in wait([j.connection for j in crew]):
                judge = next(j for j in crew if j.connection is connection)
                item = judge.receive()
                if isinstance(item, Verdict):
                    yield item.record
                elif isinstance(item, Through):
                    judge.give(next_task())
                else:
                    crew.remove(judge)
                    repeat += judge.unfinished()
                    judge.close()
                    if waiting and not crew:
                        start(1)
        for task in repeat:
            yield from _alone(task, pool, settings, crew)
    finally:
        for judge in crew:
            judge.end()
        for judge in crew:
            judge.close()


def _alone(task: Task, pool: Callable[[], Pool], settings: Share, crew: list[_Judge]) -> Iterator[Record]:
    """Run one task in a process of its own; if a job ends it, run the remaining jobs in another."""
    places = task.places
    while places:
        judge = _Judge([Task(task.index, task.group, places)], pool, settings, 1, [])
        crew.append(judge)
        judge.give(task.index)
        judge.give(None)
        while item := judge.receive():
            if isinstance(item, Verdict):
                yield item.record
        crew.remove(judge)
        judge.close()
        left = [place for rest in judge.unfinished() for place in rest.places]
        if left:
            reason = f"it could not be judged: the process that judged it {judge.how_ended()}, twice"
            shared = settings(pool(), threading.Event())
            yield unfinished(task.group[left[0]], shared, Status.INCONCLUSIVE, reason, {})
        places = tuple(left[1:])


def _judge(
    tasks: list[Task],
    pool: Callable[[], Pool],
    settings: Share,
    wide: int,
    parent: Connection,
    open_ends: list[Connection],
) -> None:
    """Run tasks in the child process until the parent ends it or dies."""
    for connection in open_ends:  # kept open here, they would hide the parent's death from all children
        connection.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and terminates this process
    given: queue.SimpleQueue[int | None] = queue.SimpleQueue()

    def end(*signal_and_frame: object) -> None:
        for _ in range(wide):  # wakes threads that wait for a task, which are joined before the process ends
            given.put(None)
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    threading.Thread(target=_listen, args=(parent, given), daemon=True).start()
    by_index: dict[int, Task] = {task.index: task for task in tasks}

    def next_task() -> Task | None:
        index = given.get()
        return None if index is None else by_index[index]

    try:
        for item in threads(next_task, pool, settings, wide, languages(tasks)):
            parent.send(item)
    except Exception as error:
        with contextlib.suppress(OSError):
            parent.send(f"raised {type(error).__name__}: {error}")
        sys.exit(1)


def _listen(parent: Connection, given: queue.SimpleQueue[Any]) -> None:
    while True:
        try:
            given.put(parent.recv())
        except (EOFError, OSError):
            os._exit(1)  # the parent was killed; the workers notice that this process is gone
