"""Judges jobs in threads of one process. Every job ends in a record, even if judging it raises."""

import contextlib
import ctypes
import queue
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from assay import meanwhile, provenance
from assay.backends import Level
from assay.backends import here as available
from assay.check.job import Job, Settings
from assay.lazy import torch
from assay.record import Record, Status
from assay.worker import Pool, Worker, WorkerLost
from assay.worker.failure import describe

Group = list[Job]
"""Jobs that one worker runs, one after another."""
Share = Callable[[Pool, threading.Event], Settings]
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Names of `mallopt` (malloc.h)."""
_KEPT = 256 << 20
"""Bytes above which a freed piece of memory is returned to the system."""


@dataclass(frozen=True)
class Task:
    """Some of a group's jobs, by their places in it."""

    index: int
    group: Group
    places: tuple[int, ...]


@dataclass(frozen=True)
class Verdict:
    """The record of one job."""

    task: int
    place: int
    record: Record


@dataclass(frozen=True)
class Through:
    """A thread has finished a task and is free for another. Jobs that must be repeated may still follow."""

    task: int


def languages(tasks: list[Task]) -> list[tuple[str, str]]:
    """Return the backend and mode of each kernel that runs on this machine, with those of plain PyTorch if it runs on a
    GPU, and of the compiler for a kernel that passes in an interpreter."""
    modes: dict[tuple[str, str], None] = {}
    for job in (job for task in tasks for job in task.group):
        if (here := available(job.kernel)).level in (Level.RUN, Level.INTERPRET):
            modes |= {("torch", "native"): None} if here.device == "cuda" else {}
            modes[job.kernel.address.backend, here.mode] = None
            modes |= {(job.kernel.address.backend, "native"): None} if here.level is Level.INTERPRET else {}
    return list(modes)


def threads(
    next_task: Callable[[], Task | None],
    pool: Callable[[], Pool],
    settings: Share,
    wide: int,
    running: list[tuple[str, str]],
) -> Iterator[Verdict | Through]:
    """Yield the results of `wide` threads of this process as they become ready."""
    with pool() as workers:
        yield from threads_with(workers, next_task, settings, wide, running)


def threads_with(
    workers: Pool, next_task: Callable[[], Task | None], settings: Share, wide: int, running: list[tuple[str, str]]
) -> Iterator[Verdict | Through]:
    """Do the same with the workers of this pool, which stays open unless the caller stops before the last result."""
    with contextlib.ExitStack() as stack:
        workers.prepare_meanwhile(running[:2])
        if running:
            _keep_freed_memory()
            stack.enter_context(_quiet_torch())
        crew = _Crew(next_task, workers, settings, wide)
        through = False
        try:
            yield from crew.results()
            through = True
        finally:
            crew.stop.set()
            if not through:  # so that no thread waits for a worker
                workers.close()
            for thread in crew.threads:  # none may still be inside torch when the interpreter ends
                thread.join(30)


class _Crew:
    """Threads that take tasks until there are none. If a process that forks workers is lost, any job that was running
    then may be the cause: the last thread repeats all such jobs, one at a time."""

    def __init__(self, next_task: Callable[[], Task | None], pool: Pool, settings: Share, wide: int) -> None:
        self.stop = threading.Event()
        self._next_task, self._pool = next_task, pool
        self._settings = settings(pool, self.stop)
        self._done: queue.SimpleQueue[Verdict | Through | None] = queue.SimpleQueue()
        self._suspects: list[tuple[Task, int]] = []
        self._working, self._lock = wide, threading.Lock()
        self.threads = [threading.Thread(target=self._work, daemon=True) for _ in range(wide)]
        for thread in self.threads:
            thread.start()

    def results(self) -> Iterator[Verdict | Through]:
        meanwhile.do()
        left = len(self.threads)
        while left:
            if (item := self._done.get()) is None:
                left -= 1
            else:
                yield item

    def _work(self) -> None:
        while not self.stop.is_set() and (task := self._next_task()):
            self._do(task)
        with self._lock:
            self._working -= 1
            suspects = self._suspects if self._working == 0 else []
        for task, place in suspects:
            self._alone(task, place)
        self._done.put(None)

    def _do(self, task: Task) -> None:
        worker: Worker | None = None
        for place in task.places:
            if self.stop.is_set():
                break
            record, worker, lost = self._one(task.group[place], worker)
            if lost:
                with self._lock:
                    self._suspects.append((task, place))
            else:
                self._put(Verdict(task.index, place, record))
        if worker:
            worker.close()
        self._put(Through(task.index))

    def _alone(self, task: Task, place: int) -> None:
        if self.stop.is_set():
            return
        job = task.group[place]
        record, worker, lost = self._one(job, None)
        if worker:
            worker.close()
        if lost:
            reason = f"crash: the process that forks workers {lost} while this kernel ran, also when it ran alone"
            record = unfinished(job, self._settings, Status.FAIL, reason, {"detector": "crash"}, record.seconds)
        self._put(Verdict(task.index, place, record))

    def _one(self, job: Job, worker: Worker | None) -> tuple[Record, Worker | None, str]:
        """Return the record, the worker if it is healthy, and how a process that forks workers was lost meanwhile."""
        began = time.perf_counter()
        with self._pool.watched() as watch:
            try:
                record, healthy = job.run(self._settings, worker)
            except BaseException as error:  # raised by Assay or by the op's reference, which may even call sys.exit
                record, healthy = broken(job, self._settings, error, time.perf_counter() - began), None
                if worker:
                    worker.close()
        if watch.lost and healthy:
            healthy.close()
        return _with_dtypes(record, job), None if watch.lost else healthy, watch.lost

    def _put(self, item: Verdict | Through) -> None:
        if not self.stop.is_set():  # results during shutdown are meaningless
            self._done.put(item)


def _with_dtypes(record: Record, job: Job) -> Record:
    """Return the record with the kernel's dtypes if it was skipped for a dtype that is not one of them. Reports then
    leave out older results of that dtype."""
    dtypes = job.kernel.dtypes
    if record.status is not Status.SKIPPED or not dtypes or job.dtype.name in dtypes:
        return record
    return replace(record, evidence={**record.evidence, "written_for": list(dtypes)})


def broken(job: Job, settings: Settings, error: BaseException, seconds: float) -> Record:
    """Return the record of a job that could not be judged because judging itself raised."""
    failure = describe(error)
    known = getattr(error, "where", "") or not failure["ours"]
    where = f" at {failure['where']}" if failure["where"] and known else ""
    what = (failure["scarce"] or failure["what"] or failure["message"]).strip()
    name = "" if failure["ours"] or isinstance(error, WorkerLost) else f"{failure['type']}: "
    reason = f"it could not be judged: {name}{what[:1500]}{where}"
    if failure["fix"]:
        reason += f"; {failure['fix']}"
    return unfinished(job, settings, Status.INCONCLUSIVE, reason, {"trace": failure["trace"]}, seconds)


def unfinished(
    job: Job, settings: Settings, status: Status, reason: str, evidence: dict[str, Any], seconds: float = 0.0
) -> Record:
    """Return the record of a job that could not write its own."""
    origin = provenance.provenance(settings.bounds.seed)
    return Record(
        "check",
        job.kernel.name,
        str(job.workload) if job.workload else f"dtype={job.dtype}",
        status,
        reason,
        settings.run,
        evidence,
        job.replay(job.workload, settings.parameters, settings.target),
        provenance.source_of(job.kernel.home, job.kernel.line),
        [],
        origin,
        seconds,
    )


def _keep_freed_memory() -> None:
    """Keep freed memory in this process. Judging makes and drops tensors of many megabytes, which the C library would
    return to the system each time, and on a virtual machine new pages cost more than the arithmetic. All threads share
    one arena, since other arenas are small."""
    with contextlib.suppress(OSError, AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, _KEPT), (_TRIM_THRESHOLD, 2 * _KEPT)):
            mallopt(parameter, value)


@contextlib.contextmanager
def _quiet_torch() -> Iterator[None]:
    """Limit PyTorch to one thread, because small tensors gain nothing from more and waiting threads spin. Suppress
    PyTorch's warnings about references."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_num_threads(before)
