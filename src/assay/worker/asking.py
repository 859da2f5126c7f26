"""One worker, as the parent sees it: ask it things, hold it to its limits, and survive whatever it does."""

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
"""Milliseconds between looks at anything but the channel."""
_PHASES: tuple[Phase, ...] = get_args(Phase)
A = TypeVar("A", bound=Answer)
_DOING = {"run": "", "compile": " of compiling", "import": " of importing its file"}


class Worker:
    """One process for one kernel. Not shared between threads."""

    def __init__(self, zygote: Forking, limits: Limits) -> None:
        """Raises WorkerLost where there can be no worker, OSError where this process can open nothing more."""
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
        with contextlib.suppress(OSError):  # one that is gone already is noticed when it is asked something
            channel.send(self._connection, harmless())
        self._connection.settimeout(max(limits.wall, limits.seconds))  # for a question that nobody takes
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
        """The last of what was printed."""
        return channel.printable(self._tail.decode(errors="replace")).strip()

    def memory(self, size: int) -> memoryview:
        """Memory shared with the worker. Raises WorkerLost where the machine has no more of it."""
        try:
            return self._arena.view(size)
        except (OSError, ValueError, OverflowError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            what = f"{size / 2**30:.1f} GiB of shared memory for the tensors of this workload could not be had: {words}"
            raise WorkerLost("room", what, self.output) from None

    def ask(self, request: Request[A], seconds: float | None = None) -> A:
        """The worker's answer. Raises Refused where that is an exception; WorkerLost if the worker dies, hangs, floods,
        outgrows its memory or talks nonsense. `seconds`: of the kernel's own time, instead of what the limits say."""
        self.tell(request)
        return self.hear(request, seconds)

    def tell(self, request: Request[Any]) -> None:
        """Ask without waiting; `hear` gives the answer."""
        self._printed = 0
        # An answer must name its question: none can be prepared before, or given twice.
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
        """The answer to the request that was sent last."""
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
        """The answer, if the message is one and not the news of another phase. Raises Damaged, and Refused."""
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
        """Raise WorkerLost if the worker has gone beyond a limit."""
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
        """End the process from any thread. The one that waits for its answer learns of it."""
        if self._connection.fileno() >= 0 and not self._zygote.ended(self.pid):
            lifeline.kill_group(self.pid)
            with contextlib.suppress(ProcessLookupError):  # forked just now, it may not lead its group yet
                os.kill(self.pid, signal.SIGKILL)
            self._zygote.status(self.pid)

    def close(self) -> None:
        """Kill the process and everything it started. One that has ended is left alone: its number may be another's."""
        if self._connection.fileno() >= 0:
            if not self._zygote.ended(self.pid):
                lifeline.kill_group(self.pid)
            self._connection.close()
            self._arena.close()


class _Hold:
    """What a worker has used in answer to one question, in all and by phase."""

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
        """Seconds that count against the limit of the phase, in which it may have been before."""
        return self._spent.get(self.phase, 0.0) + reading.charged()

    def whole(self) -> Reading:
        """Since the question was asked."""
        return self._before + self.meter.read()
