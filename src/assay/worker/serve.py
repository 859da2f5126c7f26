"""Inside a worker: answer the parent's questions until it goes away."""

from __future__ import annotations

import os
import socket
import threading
from typing import Any, NoReturn

from assay.worker import channel
from assay.worker.failure import describe
from assay.worker.limits import Phase
from assay.worker.messages import plain, read_request
from assay.worker.phase import report_to, watch_compilers


class _Replies:
    """Answers and phases, each with the nonce of its question."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._handle = connection.fileno()
        self._identity = _identity(self._handle)
        self._lock = threading.Lock()
        self._nonce = ""
        self._phase: Phase = "run"
        # A forked child must neither answer in this process's name nor keep the channel open.
        os.register_at_fork(after_in_child=self._forget)
        report_to(self.tell_phase)

    def _forget(self) -> None:
        self._nonce = ""
        if _identity(self._handle) == self._identity:
            self._connection.close()

    def question(self, nonce: str) -> None:
        with self._lock:
            self._nonce, self._phase = nonce, "run"

    def tell_phase(self, now: Phase) -> None:
        with self._lock:
            if self._nonce and now != self._phase:
                self._phase = now
                self._send({"nonce": self._nonce, "phase": now})

    def answer(self, reply: dict[str, Any]) -> None:
        with self._lock:
            nonce, self._nonce = self._nonce, ""
            try:
                self._send({"nonce": nonce, **plain(reply)})
            except (TypeError, ValueError, RecursionError) as error:  # the kernel put something else into it
                self._send({"nonce": nonce, "failure": describe(error)})

    def _send(self, message: dict[str, Any]) -> None:
        # A kernel that closes every file and opens another may have this file descriptor by now.
        if _identity(self._handle) != self._identity:
            _end()
        try:
            channel.send(self._connection, message)
        except OSError:
            _end()


def _identity(handle: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(handle)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _end() -> NoReturn:
    os._exit(channel.LOST)


def serve(connection: socket.socket, arena: channel.Arena) -> None:
    replies = _Replies(connection)
    while True:
        try:
            message = channel.receive(connection)
        except channel.Damaged:
            _end()
        if message is None:
            return
        replies.question(message.pop("nonce"))
        replies.answer(_reply(message, arena))


def _reply(message: dict[str, Any], arena: channel.Arena) -> dict[str, Any]:
    try:
        request, function = read_request(message)
        watch_compilers()
        return {"answer": function(request, arena)}
    except BaseException as error:  # sys.exit and KeyboardInterrupt are answers too
        return {"failure": describe(error)}
