"""Starts fresh Python processes, for work that must share no cache, counter or memory with anything else.

Unlike a worker, which is forked from a process that has imported everything, a fresh process starts with its
environment and nothing else. `Fresh` answers requests until it is closed; whatever ends it is raised as `WorkerLost`.
`run_once` runs one request under another command, such as compute-sanitizer."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar, overload

from assay.worker import channel, lifeline
from assay.worker.failure import Refused, describe
from assay.worker.limits import WorkerLost, how_ended
from assay.worker.messages import Request, plain, read_request

__all__ = ["Fresh", "Refused", "Tick", "last_words", "run_once", "serve", "start"]

Tick = Callable[[str], None]
"""Called with what the process is doing, in words."""
last_words = WorkerLost.last_words
A = TypeVar("A")
_ANSWERING = "assay.worker"
"""The module that answers any request (`__main__.py` beside this file)."""
_SOURCE = str(Path(__file__).parents[2])
_QUIET = {"PYTHONUNBUFFERED": "1", "OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0"}
"""Processes share the machine, so threads that wait must not spin."""
_GLANCE = 0.25
"""Seconds between two checks whether to stop."""
_TAIL = 4000
"""Characters kept of the end of what a process printed."""


def start(
    module: str,
    *arguments: str,
    environment: Mapping[str, str],
    inherited: Mapping[str, str] = os.environ,
    before: Sequence[str] = (),
    **options: Any,
) -> subprocess.Popen[bytes]:
    """Run a module in Python, in a session of its own, under the command `before`."""
    path = os.pathsep.join(filter(None, [_SOURCE, os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        # -P: a file called torch.py in the user's folder must not shadow torch.
        [*before, sys.executable, "-P", "-m", module, *arguments],
        env={**inherited, **_QUIET, "PYTHONPATH": path, **environment},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        **options,
    )


class _Process:
    """A process that prints into a file, and a context manager that ends it."""

    def __init__(self, module: str, *arguments: str, **options: Any) -> None:
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        self._process = start(module, *arguments, stdout=self._printed, stderr=subprocess.STDOUT, **options)

    def wait(self, seconds: float) -> int | None:
        """Return its exit code; None if it takes longer to end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    @property
    def output(self) -> str:
        """The end of what was printed."""
        end = os.fstat(self._printed.fileno()).st_size
        return os.pread(self._printed.fileno(), 4 * _TAIL, max(0, end - 4 * _TAIL)).decode(errors="replace")[-_TAIL:]

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """Kill the process and all it started, from any thread. A thread that waits for its answer gets WorkerLost."""
        lifeline.kill_group(self.pid)

    def close(self) -> None:
        """End the process and all it started: inductor keeps compilers of its own."""
        self.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._printed.close()


def run_once(
    request: Request[Any],
    seconds: float,
    environment: Mapping[str, str],
    before: Sequence[str] = (),
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[int | None, str]:
    """Run a request under the command `before`. Return the exit code, None if it took too long or was `stopped`, and
    the end of what was printed. There is no other answer, since such a command may not pass a channel on."""
    deadline = time.monotonic() + seconds
    with _Process(_ANSWERING, json.dumps(request.to_message()), environment=environment, before=before) as process:
        code = None
        while code is None and not stopped() and (left := deadline - time.monotonic()) > 0:
            code = process.wait(min(left, _GLANCE))
        return code, process.output


class Fresh(_Process):
    """One process of a module that calls `serve` when it is run."""

    def __init__(self, name: str = _ANSWERING, environment: Mapping[str, str] | None = None) -> None:
        self._connection, other_end = socket.socketpair()
        with other_end:
            handle = other_end.fileno()
            super().__init__(name, str(handle), environment=environment or {}, pass_fds=[handle])

    @overload
    def ask(self, question: Request[A], seconds: float, tick: Tick = ...) -> A: ...

    @overload
    def ask(self, question: dict[str, Any], seconds: float, tick: Tick = ...) -> dict[str, Any]: ...

    def ask(self, question: Any, seconds: float, tick: Tick = lambda text: None) -> Any:
        """Return the answer. Raise Refused for an exception there, WorkerLost if the process dies or takes too long."""
        typed = isinstance(question, Request)
        with contextlib.suppress(OSError):  # a dead process is noticed below
            channel.send(self._connection, question.to_message() if typed else question)
        deadline = time.monotonic() + seconds
        while True:
            ready, _, _ = select.select([self._connection], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self.close()
                raise WorkerLost("timeout", f"no answer within {seconds:g} s", self.output)
            try:
                message = channel.receive(self._connection)
                if message is None:
                    raise self._died()
                if "failure" in message:
                    raise Refused(message["failure"])
                if "answer" in message:
                    return question.read_answer(message["answer"]) if typed else message["answer"]
            except channel.Damaged as damage:
                self.close()
                raise WorkerLost("channel", f"what it sent is no message: {damage}", self.output) from None
            tick(message["doing"])

    def _died(self) -> WorkerLost:
        code = self.wait(5)
        if code is None:
            return WorkerLost("exit", "the process closed its channel and ran on", self.output)
        return WorkerLost(*how_ended(code), self.output)

    def close(self) -> None:
        super().close()
        self._connection.close()


def serve(answer: Callable[[dict[str, Any], Tick], Any] | None = None) -> None:
    """Answer, in the process, until the other side is gone. Without `answer`, any Request is answered."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    threading.Thread(target=_end_with, args=(connection.fileno(),), daemon=True).start()
    while (question := channel.receive(connection)) is not None:
        try:
            reply = {"answer": plain((answer or answered)(question, partial(_tick, connection)))}
        except Exception as error:
            reply = {"failure": describe(error)}
        channel.send(connection, reply)


def answered(message: dict[str, Any], tick: Tick = lambda text: None) -> Any:
    """Return, in the process, the answer to a request."""
    request, function = read_request(message)
    return function(request, tick)


def _tick(connection: socket.socket, text: str) -> None:
    channel.send(connection, {"doing": text})


def _end_with(handle: int) -> None:
    """End the process group when the other side is gone: compilers must not outlive a parent that was killed."""
    poll = select.poll()
    poll.register(handle, select.POLLHUP)
    while not any(event & (select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(1000)):
        pass
    os.killpg(os.getpgid(0), signal.SIGKILL)
