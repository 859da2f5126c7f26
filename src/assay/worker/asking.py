"""The parent's side of one worker: asks it questions, enforces its limits, and survives whatever it does."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import socket
import threading
from typing import Any, TypeVar, get_args

from assay.worker import channel, lifeline
from assay.worker.failure import Failure, Refused
from assay.worker.forking import Forking
from assay.worker.limits import Limits, Phase, WorkerLost, how_ended
from assay.worker.messages import Answer, Request, plain, validated
from assay.worker.meter import Meter, Reading
from assay.worker.roots import harmless
from assay.worker.zygote import WORKER

_LISTEN = 50
"""Milliseconds between checks of anything but the channel."""
_PHASES: tuple[Phase, ...] = get_args(Phase)
A = TypeVar("A", bound=Answer)
_DOING = {"run": "", "compile": " of compiling", "import": " of importing its file"}


class Worker:
    """One process for one kernel. Not shared between threads."""

    def __init__(self, zygote: Forking, limits: Limits) -> None:
        """Raise WorkerLost if there can be no worker, OSError if this process can open no more files."""
        self.limits = limits
        self._zygote = zygote
        self._printed, self._tail = 0, b""
        self._nonce = ""
        with contextlib.ExitStack() as kept, contextlib.ExitStack() as handed_over:
            self._arena = channel.Arena()
            kept.callback(self._arena.close)
            self._connection, other_end = socket.socketpair()
            kept.callback(self._connection.close)
            handed_over.callback(other_end.close)
            read, write = os.pipe()
            kept.callback(os.close, read)
            handed_over.callback(os.close, write)
            self.pid = zygote.fork(WORKER, other_end.fileno(), write, self._arena.handle)
            kept.pop_all()
        with contextlib.suppress(OSError):  # a worker that has ended is noticed by the first question
            channel.send(self._connection, harmless())
        self._connection.settimeout(max(limits.wall, limits.seconds))  # for a question that the worker does not read
        self._reader = channel.Reader(self._connection)
        self._poll = select.poll()
        self._poll.register(self._connection, select.POLLIN)
        self._drain = threading.Thread(target=self._collect, args=(read,), daemon=True)
        self._drain.start()

    def _collect(self, read: int) -> None:
        with os.fdopen(read, "rb", buffering=0) as pipe:
            while data := pipe.read(1 << 16):
                self._printed += len(data)
                self._tail = (self._tail + data)[-4096:]

    @property
    def output(self) -> str:
        """The end of what was printed."""
        return channel.printable(self._tail.decode(errors="replace")).strip()

    def memory(self, size: int) -> memoryview:
        """Return memory shared with the worker. Raise WorkerLost if the machine does not have enough."""
        try:
            return self._arena.view(size)
        except (OSError, ValueError, OverflowError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            what = f"{size / 2**30:.1f} GiB of shared memory for the tensors of this workload could not be had: {words}"
            raise WorkerLost("room", what, self.output) from None

    def ask(self, request: Request[A], seconds: float | None = None) -> A:
        """Return the worker's answer. Raise Refused if that is an exception; WorkerLost if the worker dies, hangs,
        prints too much, exceeds its memory or sends something that is no answer. `seconds` of the kernel's own time
        override the limits."""
        self.tell(request)
        return self.hear(request, seconds)

    def tell(self, request: Request[Any]) -> None:
        """Send the request without waiting; `hear` returns the answer."""
        self._printed = 0
        # An answer must carry the nonce of its question, so that none can be prepared before or given twice.
        self._nonce = secrets.token_hex(16)
        self._hold = _Hold(self.pid)
        self._refuse_strays()
        try:
            channel.send(self._connection, request.to_message() | {"nonce": self._nonce})
        except TimeoutError:
            raise self._end("timeout", "it takes no more questions") from None
        except OSError:
            raise self._died() from None

    def _refuse_strays(self) -> None:
        if self._reader.pending or self._poll.poll(0):
            if not self._reader.pending and not self._reader.read():
                raise self._died()
            raise self._damaged(f"{self._reader.pending} bytes that answer no question")

    def hear(self, request: Request[A], seconds: float | None = None) -> A:
        """Return the answer to the request that was sent last."""
        while True:
            try:
                if self._poll.poll(_LISTEN):
                    if not self._reader.read():
                        raise self._died()
                    while (message := self._reader.message()) is not None:
                        if (answer := self._taken(request, message)) is not None:
                            return answer
            except channel.Damaged as error:
                raise self._damaged(str(error)) from None
            self._look(seconds)

    def _taken(self, request: Request[A], message: dict[str, Any]) -> A | None:
        """Return the answer, or None if the message announces another phase. Raise Damaged or Refused."""
        if message.get("nonce") != self._nonce:
            raise channel.Damaged("a message that answers no question, or another one")
        if entered := next((p for p in _PHASES if p == message.get("phase")), None):
            self._hold.enter(entered)
            return None
        self._nonce = ""
        refused = "failure" in message
        if not isinstance(data := message.get("failure" if refused else "answer"), dict):
            raise channel.Damaged("a message that is neither an answer nor the news of a phase")
        answer = validated(Failure, data, "no account of an exception") if refused else request.read_answer(data)
        if self._reader.pending:
            raise channel.Damaged(f"{self._reader.pending} more bytes after its answer")
        if (size := answer.shared_bytes) > (room := self._arena.size):
            raise channel.Damaged(f"an answer that names {size} bytes of code where {room} were written")
        if isinstance(answer, Failure):
            raise Refused(plain(answer))
        return answer

    def _look(self, seconds: float | None) -> None:
        """Raise WorkerLost if the worker has exceeded a limit."""
        if self._printed > self.limits.output:
            raise self._end("flood", f"printed more than {self.limits.output >> 10} KiB")
        if not self._hold.meter.due:
            return
        reading = self._hold.meter.read()
        if self._hold.meter.resident > self.limits.memory:
            raise self._end("memory", f"used more than {self.limits.memory / 2**30:.1f} GiB of memory")
        phase = self._hold.phase
        own, wall = self.limits.of(phase, seconds)
        clock = f"{reading.own:.1f} s of processor time, {reading.wall:.1f} s by the clock"
        if self._hold.charged(reading) > own:
            if self._reader.pending:
                raise self._damaged(f"half a message, and no more within {own:g} s")
            raise self._end("timeout", f"no answer within {own:g} s{_DOING[phase]} ({clock})")
        if reading.wall > wall:
            what = f"no answer within {wall:g} s by the clock: the machine was too busy to give it more than"
            raise self._end("timeout", f"{what} {reading.own:.1f} s of processor time", starved=True)

    def _damaged(self, what: str) -> WorkerLost:
        return self._end("channel", f"what came over its private channel is no answer: {what}")

    def _end(self, how: str, detail: str, *, starved: bool = False) -> WorkerLost:
        whole = self._hold.whole()
        self.close()
        return WorkerLost(
            how,
            detail,
            self.output,
            phase=self._hold.phase,
            own_seconds=whole.own,
            wall_seconds=whole.wall,
            starved=starved,
        )

    def _died(self) -> WorkerLost:
        status = self._zygote.status(self.pid)
        if self._zygote.gone:
            how = self._zygote.how_ended()
            return self._end("crash", f"the process that forks workers {how} while this kernel ran")
        if status is None:
            return self._end("channel", "it closed its private channel and ran on")
        self._drain.join(1)
        code = os.waitstatus_to_exitcode(status)
        if code == channel.LOST:
            return self._end("channel", "its private channel was closed, or another file put in its place")
        return self._end(*how_ended(code))

    def kill(self) -> None:
        """End the process, from any thread. A thread that waits for its answer gets WorkerLost."""
        if self._connection.fileno() >= 0 and not self._zygote.ended(self.pid):
            lifeline.kill_group(self.pid)
            with contextlib.suppress(ProcessLookupError):  # forked just now, it may not lead its group yet
                os.kill(self.pid, signal.SIGKILL)
            self._zygote.status(self.pid)

    def close(self) -> None:
        """Kill the process and everything it started. If it has ended it is left alone: its PID may be another's."""
        if self._connection.fileno() >= 0:
            if not self._zygote.ended(self.pid):
                lifeline.kill_group(self.pid)
            self._connection.close()
            self._arena.close()


class _Hold:
    """The time that a worker has used for one question, in all and by phase."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._before = Reading(0.0, 0.0, 0.0)
        self._spent: dict[Phase, float] = {}
        self.phase: Phase = "run"
        self.meter = Meter(pid)

    def enter(self, phase: Phase) -> None:
        reading = self.meter.glance()
        self._spent[self.phase] = self.charged(reading)
        self._before = self._before + reading
        self.phase, self.meter = phase, Meter(self._pid, self.meter)

    def charged(self, reading: Reading) -> float:
        """Return the seconds that count against the limit of the current phase, with those of earlier stays in it."""
        return self._spent.get(self.phase, 0.0) + reading.charged()

    def whole(self) -> Reading:
        """Return the reading since the question was asked."""
        return self._before + self.meter.read()
