"""Jobs side by side: threads in this process, or several judging processes where there are cores to spare.

Judging is Python and small tensors, so threads of one process soon wait for each other. A process that has not loaded
torch may fork safely; each child has workers of its own and sends its records back."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from assay.backends import Level
from assay.backends import here as available
from assay.check.job import Job, Settings
from assay.record import Record
from assay.worker import Pool

_THREADS_PER_JUDGE = 3
"""Jobs that one process keeps busy: while one waits for its kernel, another is judged."""

Group = list[Job]
"""One kernel's jobs: one worker does them after another."""
Share = Callable[[Pool, threading.Event], Settings]
Message = Record | BaseException | None


def side_by_side(groups: list[Group], pool: Callable[[], Pool], settings: Share, jobs: int | None) -> Iterator[Record]:
    """Records as they are ready. `pool` and `settings` are called once in every process that judges."""
    cores = os.cpu_count() or 2
    wide = min(jobs or min(8, cores), len(groups))
    judges = min(cores // 4, -(-wide // _THREADS_PER_JUDGE))
    if judges < 2 or "torch" in sys.modules:
        yield from _here(groups, pool, settings, wide)
    else:
        yield from _forked(groups, pool, settings, wide, judges)


def _here(groups: list[Group], pool: Callable[[], Pool], settings: Share, wide: int) -> Iterator[Record]:
    waiting: queue.SimpleQueue[Group] = queue.SimpleQueue()
    for group in groups:
        waiting.put(group)

    def next_group() -> Group | None:
        with contextlib.suppress(queue.Empty):
            return waiting.get_nowait()
        return None

    yield from _threads(next_group, pool, settings, wide, _judged(groups))


def _judged(groups: list[Group]) -> bool:
    """Does any of these kernels run here?"""
    return any(available(job.kernel).level in (Level.RUN, Level.INTERPRET) for group in groups for job in group)


def _threads(
    next_group: Callable[[], Group | None], pool: Callable[[], Pool], settings: Share, wide: int, judging: bool
) -> Iterator[Record]:
    done: queue.SimpleQueue[Message] = queue.SimpleQueue()
    stop = threading.Event()
    with _one_thread_for_torch(judging), pool() as workers:
        shared = settings(workers, stop)

        def work() -> None:
            try:
                while not stop.is_set() and (group := next_group()):
                    worker = None
                    for job in group:
                        record, worker = job.run(shared, worker)
                        if stop.is_set():
                            break
                        done.put(record)
                    if worker:
                        worker.close()
            except BaseException as error:
                done.put(error)
            done.put(None)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(wide)]
        for thread in threads:
            thread.start()
        try:
            yield from _until_all_end(done.get, len(threads))
        finally:
            stop.set()
            workers.close()
            for thread in threads:  # none may still be inside torch when the interpreter ends
                thread.join(30)


@contextlib.contextmanager
def _one_thread_for_torch(judging: bool) -> Iterator[None]:
    """Small tensors gain nothing from more, and threads that wait for each other spin. Where everything is only built,
    torch is not needed here at all."""
    if not judging:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _until_all_end(receive: Callable[[], Message], left: int) -> Iterator[Record]:
    while left:
        item = receive()
        if item is None:
            left -= 1
        elif isinstance(item, BaseException):
            raise item
        else:
            yield item


def _forked(groups: list[Group], pool: Callable[[], Pool], settings: Share, wide: int, judges: int) -> Iterator[Record]:
    context = multiprocessing.get_context("fork")
    position: Any = context.Value("l", 0)
    done: Any = context.Queue()
    shares = [wide // judges + (i < wide % judges) for i in range(judges)]
    children = [context.Process(target=_judge, args=(groups, position, done, pool, settings, n)) for n in shares]
    for child in children:
        child.start()

    def receive() -> Message:
        while True:
            with contextlib.suppress(queue.Empty):
                item: Message = done.get(timeout=1)
                return item
            if lost := [c for c in children if c.exitcode not in (None, 0)]:
                return RuntimeError(f"a judging process ended with exit code {lost[0].exitcode}")

    try:
        yield from _until_all_end(receive, judges)
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.join(30)


def _judge(groups: list[Group], position: Any, done: Any, pool: Callable[[], Pool], settings: Share, wide: int) -> None:
    """One child: takes the next kernel until there is none."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle: it terminates us
    signal.signal(signal.SIGTERM, lambda *_: (done.cancel_join_thread(), sys.exit(0)))

    def next_group() -> Group | None:
        with position.get_lock():
            place = position.value
            position.value += 1
        return groups[place] if place < len(groups) else None

    try:
        for record in _threads(next_group, pool, settings, wide, _judged(groups)):
            done.put(record)
    except Exception as error:
        done.put(error)
    done.put(None)
