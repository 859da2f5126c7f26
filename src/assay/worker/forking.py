"""The parent's hold on the processes that fork others: the one that has imported torch, and the zygotes below it."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from assay.worker import channel, scratch
from assay.worker.limits import Limits, WorkerLost
from assay.worker.meter import Meter
from assay.worker.zygote import ZYGOTE

_SOURCE = str(Path(__file__).parents[2])
_QUIET = {
    "PYTHONUNBUFFERED": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "KMP_BLOCKTIME": "0",
}
"""Workers share the machine: threads that wait must not spin, and inductor must not keep a pool of its own."""
_PROMPT = 20.0
"""Seconds of its own time within which a process that has imported everything forks: it has nothing else to do."""
_LOOK_EVERY = 1.0


def ended_how(status: int) -> str:
    """A wait status in words: `was killed by SIGKILL`."""
    if os.WIFSIGNALED(status):
        return f"was killed by {signal_name(os.WTERMSIG(status))}"
    return f"ended with exit code {os.waitstatus_to_exitcode(status)}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


class Forking:
    """A process that forks others when asked. `errors` is a file that takes what it prints."""

    def __init__(self, pid: int, name: str, control: socket.socket, errors: int) -> None:
        self.pid, self.name = pid, name
        self._control, self._errors = control, errors
        self.gone = self.ready = self._closing = False
        self.failed = ""
        """Why it could not import what it should."""
        self._lock = threading.Lock()
        self._started: list[int] = []
        self._refused = ""
        self._exited: dict[int, int] = {}
        self._changed = threading.Condition()
        self._lost: Callable[[str], None] = lambda how: None
        threading.Thread(target=self._listen, daemon=True).start()

    def when_lost(self, call: Callable[[str], None]) -> None:
        """Call it with how this process ended, should it end without being asked to and after it was ready."""
        self._lost = call

    def _listen(self) -> None:
        while True:
            try:
                message = channel.receive(self._control)
            except channel.Damaged:
                message = None
            if message is None:
                if self.ready and not self._closing:
                    self._lost(self.how_ended())
                with self._changed:
                    self.gone = True
                    self._changed.notify_all()
                return
            with self._changed:
                self._heard(message)
                self._changed.notify_all()

    def _heard(self, message: dict[str, Any]) -> None:
        self.ready = self.ready or "ready" in message
        self.failed = message.get("failed", self.failed)
        self._refused = message.get("refused", self._refused)
        if "started" in message:
            self._started.append(message["started"])
        if "exited" in message:
            self._exited[message["exited"]] = message["status"]

    def how_ended(self) -> str:
        raise NotImplementedError

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, signal.SIGKILL)

    def fork(self, what: bytes, *handles: int) -> int:
        """The number of the new process. Raises WorkerLost: `start` where none could be had."""
        with self._lock, self._changed:
            self._refused = ""
            with contextlib.suppress(OSError):  # one that is gone is noticed below
                socket.send_fds(self._control, [what], list(handles))
            ready, meter = self.ready, Meter(self.pid)
            while not (self._started or self._refused or self.failed or self.gone):
                self._changed.wait(_LOOK_EVERY)
                if self.ready and not ready:
                    ready, meter = True, Meter(self.pid)
                if meter.due and (stuck := self._stuck(meter)):
                    self.kill()
                    self._changed.wait_for(lambda: self.gone, 10)
                    raise WorkerLost("start", f"no worker could be started: {stuck}", self._said())
            if self._started:
                return self._started.pop(0)
            why = self.failed or self._refused
        if not why:
            why = f"{self.name} {self.how_ended()}"
            if said := self._said():
                why += f"; it last printed: {said[-500:]}"
        raise WorkerLost("start", f"no worker could be started: {why}", self._said())

    def _stuck(self, meter: Meter) -> str:
        """Why there is no hope of an answer any more."""
        own, wall = Limits().of("import") if not self.ready else (_PROMPT, Limits().wall)
        reading = meter.read()
        if reading.charged() <= own and reading.wall <= wall:
            return ""
        doing = "forked nothing" if self.ready else "was not ready"
        return f"{self.name} {doing} within {min(reading.wall, wall):.0f} s, and was ended"

    def _said(self) -> str:
        """The last of what it printed."""
        try:
            data = os.pread(self._errors, 1 << 16, max(0, os.fstat(self._errors).st_size - 4096))
        except OSError:
            return ""
        return channel.printable(data.decode(errors="replace")).strip()

    def status(self, pid: int, seconds: float = 5.0) -> int | None:
        """The wait status of a process it forked; None where it lives on, or is not known to have ended."""
        deadline = time.monotonic() + 60
        with self._changed:
            self._changed.wait_for(lambda: pid in self._exited or self.gone, timeout=seconds)
            # On a busy machine the news of an end may take longer than the end.
            while pid not in self._exited and not self.gone and time.monotonic() < deadline and _dead(pid):
                self._changed.wait(_LOOK_EVERY)
            return self._exited.get(pid)

    def close(self) -> None:
        self._closing = True
        self._control.close()
        os.close(self._errors)


def _dead(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return True


def errors_file() -> int:
    """A file for what a process prints. Unlike a pipe it never fills up, so nobody waits for it to be read."""
    return os.memfd_create("assay-errors", os.MFD_CLOEXEC)


def standard_handles() -> None:
    """Open the standard handles that are closed: a socket that took one of their numbers would be lost in a child."""
    for wanted in (0, 1, 2):
        try:
            os.fstat(wanted)
        except OSError:
            if (handle := os.open(os.devnull, os.O_RDWR)) != wanted:
                os.close(handle)


class Root(Forking):
    """The process that has imported torch alone. Every pool's zygotes are forked from it, and it stays when they go:
    importing torch is most of what a short check costs. It ends with this process."""

    def __init__(self, surroundings: Any) -> None:
        self.surroundings = surroundings
        standard_handles()
        ours, theirs = socket.socketpair()
        errors = errors_file()
        environment = dict(os.environ) | _QUIET
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [_SOURCE, os.environ.get("PYTHONPATH")]))
        # -P: a file called torch.py in the user's folder must not stand in for torch.
        command = [sys.executable, "-P", "-m", "assay.worker.zygote", str(theirs.fileno()), "torch"]
        with theirs:
            self.process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True, cwd=surroundings[1],
            )  # fmt: skip
        super().__init__(self.process.pid, "the process that imports torch", ours, errors)

    @property
    def ours(self) -> bool:
        """A forked process must leave its parent's alone."""
        return bool(self.surroundings[0] == os.getpid())

    @property
    def alive(self) -> bool:
        return not self.gone and not self.failed and self.process.poll() is None

    def how_ended(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self.process.wait(5)
            return ended_how(-code if code < 0 else code << 8)
        return "closed its control"

    def close(self) -> None:
        self._closing = True
        self.process.kill()
        self.process.wait()
        super().close()


_root: Root | None = None
_planting = threading.Lock()


def _surroundings() -> Any:
    """What a new process takes over from this one, but for pytest's note of the test that runs just now."""
    try:
        folder = Path.cwd()
    except OSError:  # it was deleted; torch cannot be imported nowhere
        folder = Path(os.sep)
    return os.getpid(), folder, {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}


def root() -> Root:
    """The one there is, unless it is gone or a new one would find other surroundings."""
    global _root
    with _planting:
        now = _surroundings()
        if _root is None or _root.surroundings != now or not _root.alive:
            uproot()
            _root = Root(now)
        return _root


@atexit.register
def uproot() -> None:
    global _root
    if _root is not None and _root.ours:
        _root.close()
    _root = None


class Zygote(Forking):
    """A process that has imported what one language needs in one mode."""

    def __init__(self, environment: Mapping[str, str], preload: tuple[str, ...]) -> None:
        scratch.sweep()
        # A worker killed while inductor writes its cache would leave half a library there for every later run.
        self._scratch = scratch.Scratch()
        self._root = root()
        ours, theirs = socket.socketpair()
        errors = errors_file()
        try:
            with theirs:
                pid = self._root.fork(ZYGOTE, theirs.fileno(), errors)
            folder = str(self._scratch.path)
            told = {"environment": dict(environment) | {"TORCHINDUCTOR_CACHE_DIR": folder}}
            with contextlib.suppress(OSError):  # one that is gone already is noticed when it is asked to fork
                channel.send(ours, told | {"preload": preload, "scratch": folder})
        except BaseException:
            ours.close()
            os.close(errors)
            self._scratch.close()
            raise
        super().__init__(pid, f"the process that imports {' and '.join(preload)}", ours, errors)

    def how_ended(self) -> str:
        status = self._root.status(self.pid)
        if status is None:
            return "was killed together with the one above it" if self._root.gone else "closed its control"
        return ended_how(status)

    def close(self) -> None:
        self._closing = True
        self.kill()
        self._root.status(self.pid)
        super().close()
        self._scratch.close()
