"""A fresh Python process that answers questions: for what must share no cache, counter or memory with anything else.

Unlike a worker, which is forked from a process that has imported everything, it starts with its environment and nothing
else. Whatever ends it is raised as `WorkerLost`."""

from __future__ import annotations

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
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assay.errors import AssayError, SourceError, UsageError
from assay.worker import channel
from assay.worker.failure import describe
from assay.worker.limits import WorkerLost

Tick = Callable[[str], None]
"""Told what is being done just now."""
_SOURCE = str(Path(__file__).parents[2])
_QUIET = {"PYTHONUNBUFFERED": "1", "OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0"}
"""As in workers: they share the machine, so threads that wait must not spin."""
_TAIL = 2000
"""Characters of what a lost process printed last."""


class Refused(AssayError):
    """The process lives, and its answer is an exception. `told` is all it said of it (assay.worker.failure)."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.told = told
        # An error of ours says itself where it was, or it does not matter.
        where = told["where"] if not told["ours"] or told["message"].startswith(f"{told['where']}:") else ""
        super().__init__(told["what"] or f"{told['type']}: {told['message']}", fix=told["fix"], where=where)

    @property
    def wrong_use(self) -> UsageError | None:
        """The same as an error here, where it is the user's: in what was asked for, or in a model of their own."""
        if self.told["type"] not in (UsageError.__name__, SourceError.__name__):
            return None
        return UsageError(self.what, fix=self.fix, where=self.where)


def last_words(lost: WorkerLost) -> str:
    """What ended a process, and the last line it printed; where it took too long, that line says nothing."""
    last = lost.output.strip().splitlines()[-1:] if lost.how != "timeout" else []
    return "; ".join([lost.detail, *last])


class Fresh:
    """One process of the module `name`, which must call `serve` when it is run. A context manager."""

    def __init__(self, name: str, environment: dict[str, str]) -> None:
        self._connection, theirs = socket.socketpair()
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        path = os.pathsep.join(filter(None, [_SOURCE, os.environ.get("PYTHONPATH")]))
        # -P: a file called torch.py in the user's folder must not stand in for torch.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", name, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=os.environ | _QUIET | {"PYTHONPATH": path} | environment,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=self._printed,
            stderr=subprocess.STDOUT,
        )
        theirs.close()

    def ask(self, question: dict[str, Any], seconds: float, tick: Tick = lambda text: None) -> dict[str, Any]:
        """The answer. Raises Refused for an exception there, WorkerLost if the process dies or takes too long."""
        with contextlib.suppress(OSError):  # a dead process is noticed below
            channel.send(self._connection, question)
        deadline = time.monotonic() + seconds
        while True:
            ready, _, _ = select.select([self._connection], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self.close()
                raise WorkerLost("timeout", f"no answer within {seconds:g} s", self.output)
            try:
                message = channel.receive(self._connection)
            except channel.Damaged as damage:
                self.close()
                raise WorkerLost("channel", f"what it sent is no message: {damage}", self.output) from None
            if message is None:
                raise self._died()
            if "failure" in message:
                raise Refused(message["failure"])
            if "answer" in message:
                answer: dict[str, Any] = message["answer"]
                return answer
            tick(message["doing"])

    @property
    def output(self) -> str:
        """The last of what was printed."""
        end = os.fstat(self._printed.fileno()).st_size
        return os.pread(self._printed.fileno(), 4 * _TAIL, max(0, end - 4 * _TAIL)).decode(errors="replace")[-_TAIL:]

    def _died(self) -> WorkerLost:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        code = self._process.returncode
        if code is not None and code < 0:
            hint = " (the system may have run out of memory)" if -code == signal.SIGKILL else ""
            return WorkerLost("crash", f"the process died of {signal.Signals(-code).name}{hint}", self.output)
        return WorkerLost("exit", f"the process ended with exit code {code} before answering", self.output)

    def close(self) -> None:
        """End the process and all it started: inductor keeps compilers of its own."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._connection.close()

    def __enter__(self) -> Fresh:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._printed.close()


def serve(answer: Callable[[dict[str, Any], Tick], dict[str, Any]]) -> None:
    """In the process: answer until the other side is gone."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    threading.Thread(target=_end_with, args=(connection.fileno(),), daemon=True).start()
    while (question := channel.receive(connection)) is not None:
        try:
            reply = {"answer": answer(question, lambda text: channel.send(connection, {"doing": text}))}
        except Exception as error:
            reply = {"failure": describe(error)}
        channel.send(connection, reply)


def _end_with(handle: int) -> None:
    """A parent that was killed must leave nobody compiling behind."""
    poll = select.poll()
    poll.register(handle, select.POLLHUP)
    while not any(event & (select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(1000)):
        pass
    os.killpg(os.getpgid(0), signal.SIGKILL)
