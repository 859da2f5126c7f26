"""The parent's side: start workers, ask them things, and survive whatever they do."""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from assay import host
from assay.worker import channel
from assay.worker.zygote import WORKER, ZYGOTE

_SOURCE = str(Path(__file__).parents[2])
MODES: dict[str, dict[str, str]] = {
    "native": {},
    "triton-interpret": {"TRITON_INTERPRET": "1"},
    "numba-sim": {"NUMBA_ENABLE_CUDASIM": "1"},
}
"""Environment of each mode, set before its language is imported. Modes never mix."""
_QUIET = {
    "PYTHONUNBUFFERED": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "KMP_BLOCKTIME": "0",
}
"""Workers share the machine: threads that wait must not spin, and inductor must not keep a pool of its own."""
# Nothing here may touch the driver: a context does not survive a fork. (torch._inductor asks for device properties.)
PRELOAD = {
    "torch": ("torch",),
    "inductor": ("torch",),
    "triton": ("torch", "triton"),
    "cuda": ("torch",),
    "cupy": ("torch", "cupy"),
    "numba": ("torch", "numba", "numba.cuda"),
    "njit": ("torch", "numba"),
}
TABLES = "assay.worker.numba_tables"


def imports(backend: str) -> tuple[str, ...]:
    """What a zygote of this backend imports. Numba's tables only where no driver could notice; asking whether there is
    one touches it, so it is asked here."""
    names = PRELOAD[backend]
    return (*names, TABLES) if "numba" in names and not host.runs_on_gpu() else names


_WEIGH_EVERY = 0.25
"""Seconds between looks at a worker's memory: each reads the process table."""


@dataclass(frozen=True)
class Limits:
    seconds: float = 60.0
    """Wall clock for one question to a worker (one workload, compilation included)."""
    memory: int = field(default_factory=lambda: int(psutil.virtual_memory().total * 0.6))
    """Resident bytes of a worker and its children."""
    output: int = 1 << 20
    """Bytes a kernel may print in answer to one question."""


class WorkerLost(Exception):
    """The worker did not live to answer. `how` names what ended it."""

    def __init__(self, how: str, detail: str, output: str) -> None:
        super().__init__(detail)
        self.how, self.detail, self.output = how, detail, output


class Worker:
    """One process for one kernel. Not shared between threads."""

    def __init__(self, zygote: _Zygote, limits: Limits) -> None:
        self.limits = limits
        self._zygote = zygote
        self._arena = channel.Arena()
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        self._connection = ours
        self._printed, self._tail = 0, b""
        try:
            self.pid = zygote.fork(WORKER, theirs.fileno(), write, self._arena.handle)
        finally:
            theirs.close()
            os.close(write)
        self._drain = threading.Thread(target=self._collect, args=(read,), daemon=True)
        self._drain.start()

    def _collect(self, read: int) -> None:
        with os.fdopen(read, "rb", buffering=0) as pipe:
            while data := pipe.read(1 << 16):
                self._printed += len(data)
                self._tail = (self._tail + data)[-4096:]

    @property
    def output(self) -> str:
        """The last of what was printed."""
        return self._tail.decode(errors="replace").strip()

    def memory(self, size: int) -> memoryview:
        return self._arena.view(size)

    def ask(self, message: dict[str, Any], seconds: float | None = None) -> dict[str, Any]:
        """The worker's answer. Raises WorkerLost if it dies, hangs, floods or outgrows its memory first."""
        self.tell(message)
        return self.hear(seconds)

    def tell(self, message: dict[str, Any]) -> None:
        """Ask without waiting; `hear` gives the answer."""
        self._printed = 0
        try:
            channel.send(self._connection, message)
        except OSError:
            raise self._died() from None

    def hear(self, seconds: float | None = None) -> dict[str, Any]:
        limit = seconds if seconds is not None else self.limits.seconds
        deadline = time.monotonic() + limit
        weigh = time.monotonic() + _WEIGH_EVERY
        while True:
            ready, _, _ = select.select([self._connection], [], [], 0.05)
            if ready:
                answer = channel.receive(self._connection)
                if answer is None:
                    raise self._died()
                return answer
            if time.monotonic() > deadline:
                raise self._end("timeout", f"no answer within {limit:g} s")
            if self._printed > self.limits.output:
                raise self._end("flood", f"printed more than {self.limits.output >> 10} KiB")
            if time.monotonic() > weigh:
                if self._resident() > self.limits.memory:
                    raise self._end("memory", f"used more than {self.limits.memory / 2**30:.1f} GiB of memory")
                weigh = time.monotonic() + _WEIGH_EVERY

    def _resident(self) -> int:
        try:
            process = psutil.Process(self.pid)
            return int(
                sum(p.memory_info().rss - p.memory_info().shared for p in (process, *process.children(recursive=True)))
            )
        except psutil.Error:
            return 0

    def _end(self, how: str, detail: str) -> WorkerLost:
        self.close()
        return WorkerLost(how, detail, self.output)

    def _died(self) -> WorkerLost:
        status = self._zygote.status(self.pid)
        self._drain.join(1)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            name = signal.Signals(number).name
            hint = " (the system may have run out of memory)" if number == signal.SIGKILL else ""
            return self._end("crash", f"the process died of {name}{hint}")
        return self._end(
            "exit", f"the process ended itself with exit code {os.waitstatus_to_exitcode(status)} before answering"
        )

    def close(self) -> None:
        """Kill the process and everything it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        if self._connection.fileno() >= 0:
            self._connection.close()
            self._arena.close()


class _Forking:
    """The parent's hold on a process that forks others; `errors` is where it writes what went wrong."""

    def __init__(self, control: socket.socket, errors: int) -> None:
        self._control, self._errors = control, errors
        os.set_blocking(errors, False)
        self._gone = False
        self._lock = threading.Lock()
        self._started: list[int] = []
        self._exited: dict[int, int] = {}
        self._changed = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            message = channel.receive(self._control)
            with self._changed:
                if message is None:
                    self._gone = True
                    self._changed.notify_all()
                    return
                if "started" in message:
                    self._started.append(message["started"])
                else:
                    self._exited[message["exited"]] = message["status"]
                self._changed.notify_all()

    def fork(self, what: bytes, *handles: int) -> int:
        with self._lock, self._changed:
            with contextlib.suppress(OSError):  # one that is gone is noticed below
                socket.send_fds(self._control, [what], list(handles))
            self._changed.wait_for(lambda: self._started or self._gone, timeout=120)
            if self._started:
                return self._started.pop(0)
        said = b""
        with contextlib.suppress(BlockingIOError):  # it has said nothing
            said = os.read(self._errors, 1 << 16)
        words = said.decode(errors="replace").strip()[-2000:]
        raise WorkerLost("start", f"no worker could be started: {words or 'no answer'}", words)

    def status(self, pid: int) -> int:
        with self._changed:
            self._changed.wait_for(lambda: pid in self._exited or self._gone, timeout=5)
            return self._exited.get(pid, signal.SIGKILL)

    def close(self) -> None:
        self._control.close()
        os.close(self._errors)


class _Root(_Forking):
    """The process that has imported torch alone. Every pool's zygotes are forked from it, and it stays when they go:
    importing torch is most of what a short check costs. It ends with this process."""

    def __init__(self, surroundings: Any) -> None:
        self.surroundings = surroundings
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        environment = dict(os.environ) | _QUIET
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [_SOURCE, os.environ.get("PYTHONPATH")]))
        # -P: a file called torch.py in the user's folder must not stand in for torch.
        command = [sys.executable, "-P", "-m", "assay.worker.zygote", str(theirs.fileno()), "torch"]
        self.process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=write, start_new_session=True,
        )  # fmt: skip
        theirs.close()
        os.close(write)
        super().__init__(ours, read)

    @property
    def ours(self) -> bool:
        """A forked process must leave its parent's alone."""
        return bool(self.surroundings[0] == os.getpid())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        super().close()


_root: _Root | None = None
_planting = threading.Lock()


def _surroundings() -> Any:
    """What a new process takes over from this one, but for pytest's note of the test that runs just now."""
    return os.getpid(), Path.cwd(), {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}


def root() -> _Root:
    """The one there is, unless it is gone or a new one would find other surroundings."""
    global _root
    with _planting:
        now = _surroundings()
        if _root is None or _root.surroundings != now or _root.process.poll() is not None:
            uproot()
            _root = _Root(now)
        return _root


@atexit.register
def uproot() -> None:
    global _root
    if _root is not None and _root.ours:
        _root.close()
    _root = None


class _Zygote(_Forking):
    """The parent's hold on a process that has imported what one language needs in one mode."""

    def __init__(self, mode: str, preload: tuple[str, ...]) -> None:
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        # A worker killed while inductor writes its cache would leave half a library there for every later run.
        self._cache = tempfile.TemporaryDirectory(prefix="assay-")
        environment = MODES[mode] | {"TORCHINDUCTOR_CACHE_DIR": self._cache.name}
        self._root = root()
        try:
            self.pid = self._root.fork(ZYGOTE, theirs.fileno(), write)
        finally:
            theirs.close()
            os.close(write)
        channel.send(ours, {"environment": environment, "preload": preload})
        super().__init__(ours, read)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._root.status(self.pid)
        super().close()
        self._cache.cleanup()


class Pool:
    """Zygotes by mode and what they import, started when first needed. Thread-safe; a context manager."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._zygotes: dict[tuple[str, tuple[str, ...]], _Zygote] = {}
        self._lock = threading.Lock()
        self._closed = False

    def prepare(self, wanted: Iterable[tuple[str, str]]) -> None:
        """Start the zygotes of these backends and modes; they import side by side."""
        with self._lock:
            if self._closed:  # a thread that has not heard of it yet must not leave a zygote behind
                raise WorkerLost("start", "the pool is closed", "")
            for backend, mode in wanted:
                if (mode, imports(backend)) not in self._zygotes:
                    self._zygotes[mode, imports(backend)] = _Zygote(mode, imports(backend))

    def worker(self, backend: str, mode: str, limits: Limits | None = None) -> Worker:
        self.prepare([(backend, mode)])
        return Worker(self._zygotes[mode, imports(backend)], limits or self.limits)

    def close(self) -> None:
        with self._lock:
            zygotes, self._zygotes, self._closed = list(self._zygotes.values()), {}, True
        for zygote in zygotes:
            zygote.close()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
