"""Pools of processes: zygotes, by mode and imports, and the workers that they fork."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from assay import host
from assay.worker.asking import Worker
from assay.worker.failure import scarce
from assay.worker.limits import Limits, WorkerLost
from assay.worker.roots import Zygote, zygote

MODES: dict[str, dict[str, str]] = {
    "native": {},
    "static": {},
    "triton-interpret": {"TRITON_INTERPRET": "1"},
    "numba-sim": {"NUMBA_ENABLE_CUDASIM": "1"},
}
"""Environment of each mode, set before its language is imported. Modes never mix."""
# Nothing here may touch the driver: a context does not survive a fork. (torch._inductor asks for device properties.)
PRELOAD = {
    "torch": ("torch",),
    "inductor": ("torch",),
    "triton": ("torch", "triton", "assay.worker.triton_key"),
    "cuda": ("torch",),
    "cupy": ("torch", "cupy"),
    "numba": ("torch", "numba", "numba.cuda"),
    "njit": ("torch", "numba"),
}
ANSWERS = "assay.worker.preload"
TABLES = {
    "numba": "assay.worker.numba_tables",
    "njit": "assay.worker.numba_tables",
    "inductor": "assay.worker.inductor_tables",
}
"""Modules that are imported only if there is no driver that could notice."""


def imports(backend: str) -> tuple[str, ...]:
    """Return what a zygote of this backend imports. Asking for a driver touches it, so that is done here, not there."""
    names = (*PRELOAD[backend], ANSWERS)
    return (*names, TABLES[backend]) if backend in TABLES and not host.runs_on_gpu() else names


@dataclass
class Watch:
    """The zygotes that were lost while one thread used a pool."""

    pool: Pool
    before: int

    @property
    def lost(self) -> str:
        """How the first of them ended; empty if none did."""
        return next(iter(self.pool.losses[self.before :]), "")


class Pool:
    """Zygotes, started when first needed and again when lost, and the workers they forked. Thread-safe; a context
    manager."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.losses: list[str] = []
        """How each zygote that ended by itself ended."""
        self._zygotes: dict[tuple[str, tuple[str, ...]], Zygote] = {}
        self._workers: weakref.WeakSet[Worker] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._closed = False
        self._watching = threading.local()

    @contextlib.contextmanager
    def watched(self) -> Iterator[Watch]:
        """Give this thread no more workers once a zygote is lost, while the context is open: whatever ended it may be
        what this thread runs, and would end the next one too."""
        watch = self._watching.watch = Watch(self, len(self.losses))
        try:
            yield watch
        finally:
            self._watching.watch = None

    def prepare(self, wanted: Iterable[tuple[str, str]]) -> None:
        """Start the zygotes of these backends and modes; they import side by side."""
        for backend, mode in wanted:
            self._zygote(mode, imports(backend))

    def prepare_meanwhile(self, wanted: Iterable[tuple[str, str]]) -> None:
        """Do the same in a thread, because this process has to import torch as well."""
        chosen = list(wanted)

        def prepare() -> None:
            with contextlib.suppress(OSError, WorkerLost):  # the next request for a worker raises it again
                self.prepare(chosen)

        threading.Thread(target=prepare, daemon=True).start()

    def worker(self, backend: str, mode: str, limits: Limits | None = None) -> Worker:
        """Return a new worker. Raise WorkerLost if none can be had."""
        watch: Watch | None = getattr(self._watching, "watch", None)
        if watch and watch.lost:
            raise WorkerLost("crash", f"the process that forks workers {watch.lost} while this kernel ran")
        try:
            return self._worker(mode, imports(backend), limits or self.limits)
        except OSError as error:
            raise WorkerLost("start", f"no worker could be started: {scarce(error) or error}") from None

    def _worker(self, mode: str, names: tuple[str, ...], limits: Limits) -> Worker:
        above = self._zygote(mode, names)
        try:
            return self._forked(above, limits)
        except WorkerLost:
            # A zygote that failed to import would fail again; one that was killed is started once more.
            if above.failed or not above.gone:
                raise
        return self._forked(self._zygote(mode, names), limits)

    def _forked(self, above: Zygote, limits: Limits) -> Worker:
        worker = Worker(above, limits)
        self._workers.add(worker)
        if self._closed:  # closed while the worker was forked
            worker.kill()
        return worker

    def _zygote(self, mode: str, names: tuple[str, ...]) -> Zygote:
        with self._lock:
            if self._closed:  # a thread that still runs must not start another zygote
                raise WorkerLost("start", "the pool is closed")
            current = self._zygotes.get((mode, names))
            if current is not None and current.gone and not current.failed:
                current.give_back()
                current = None
            if current is None:
                current = self._zygotes[mode, names] = self._started(mode, names)
            return current

    def _started(self, mode: str, names: tuple[str, ...]) -> Zygote:
        try:
            started = zygote(MODES[mode], names)
        except WorkerLost:
            started = zygote(MODES[mode], names)  # the process above it was lost: there is a new one by now
        started.when_lost(self.losses.append)
        return started

    def close(self) -> None:
        """End all workers. The zygotes stay for the next pool."""
        with self._lock:
            zygotes, self._zygotes, self._closed = list(self._zygotes.values()), {}, True
        for worker in list(self._workers):
            worker.kill()
        for each in zygotes:
            each.forget(self.losses.append)
            each.give_back()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
