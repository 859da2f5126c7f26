"""The parent's side of a process that forks others on request."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import psutil

from assay.worker import channel
from assay.worker.limits import Limits, WorkerLost, signal_name
from assay.worker.meter import Meter

_PROMPT = 20.0
"""Seconds of its own time within which a process that has imported everything must fork: it has nothing else to do."""
_LOOK_EVERY = 1.0


def ended_how(status: int) -> str:
    """Return a wait status in words, such as `was killed by SIGKILL`."""
    if os.WIFSIGNALED(status):
        return f"was killed by {signal_name(os.WTERMSIG(status))}"
    return f"ended with exit code {os.waitstatus_to_exitcode(status)}"


class Forking:
    """A process that forks others on request. `errors` is the file that it prints to."""

    def __init__(self, pid: int, name: str, control: socket.socket, errors: int) -> None:
        self.pid, self.name = pid, name
        self._control, self._errors = control, errors
        self.gone = self.ready = self._closing = False
        self.failed = ""
        """Why its imports failed."""
        self._lock = threading.Lock()
        self._started: list[int] = []
        self._refused = ""
        self._exited: dict[int, int] = {}
        self._changed = threading.Condition()
        self._when_lost: list[Callable[[str], None]] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def when_lost(self, call: Callable[[str], None]) -> None:
        """Register a function that is called with how this process ended, if it ends unasked after it was ready."""
        self._when_lost.append(call)

    def forget(self, call: Callable[[str], None]) -> None:
        """Unregister a function of `when_lost`."""
        with contextlib.suppress(ValueError):
            self._when_lost.remove(call)

    def _listen(self) -> None:
        while True:
            try:
                message = channel.receive(self._control)
            except channel.Damaged:
                message = None
            if message is None:
                if self.ready and not self._closing:
                    how = self.how_ended()
                    for call in tuple(self._when_lost):
                        call(how)
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
        if self.gone:  # by now its PID may be another process's
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, signal.SIGKILL)

    def fork(self, what: bytes, *handles: int) -> int:
        """Return the PID of a new process. Raise WorkerLost (`start`) if there is none."""
        with self._lock, self._changed:
            self._refused = ""
            with contextlib.suppress(OSError):  # a process that has ended is noticed below
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
        """Return why no answer is expected any more; empty if there is still time."""
        own, wall = Limits().of("import") if not self.ready else (_PROMPT, Limits().wall)
        reading = meter.read()
        if reading.charged() <= own and reading.wall <= wall:
            return ""
        doing = "forked nothing" if self.ready else "was not ready"
        return f"{self.name} {doing} within {min(reading.wall, wall):.0f} s, and was ended"

    def _said(self) -> str:
        """Return the end of what it printed."""
        try:
            data = os.pread(self._errors, 1 << 16, max(0, os.fstat(self._errors).st_size - 4096))
        except OSError:
            return ""
        return channel.printable(data.decode(errors="replace")).strip()

    def status(self, pid: int, seconds: float = 5.0) -> int | None:
        """Return the wait status of a process it forked; None if that is still running or not known to have ended."""
        deadline = time.monotonic() + 60
        with self._changed:
            self._changed.wait_for(lambda: pid in self._exited or self.gone, timeout=seconds)
            # On a busy machine the report of an exit may arrive much later than the exit.
            while pid not in self._exited and not self.gone and time.monotonic() < deadline and _dead(pid):
                self._changed.wait(_LOOK_EVERY)
            return self._exited.get(pid)

    def ended(self, pid: int) -> bool:
        """True if a process it forked has ended, and all orphans of that process too."""
        return pid in self._exited

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
    """Return a file for what a process prints. Unlike a pipe it never fills up, so that it need not be read."""
    return os.memfd_create("assay-errors", os.MFD_CLOEXEC)
