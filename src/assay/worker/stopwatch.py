"""Inside a worker: times a batch of calls. On the CPU it uses the host's clock; on the GPU, events around a batch that
is ready before its first call starts, so that the host's speed is not in the time: captured into a graph or, if a
kernel cannot be captured, queued behind a kernel that holds the stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assay.errors import AssayError
from assay.worker import bound

Call = Callable[[int], Any]
"""Runs the kernel on the i-th set of buffers, modulo their number."""
_BREATH = 1e-4
"""Seconds of sleep before a batch on the CPU for which much was done: a busy system would otherwise preempt this
process, which has just used up its turn, in the middle of the batch."""
_LEAST_BUSY, _AGAIN, _SHORT = 0.9, 3, 0.02
"""A batch on the CPU whose processor time is less than this share of its wall time was interrupted by another process
and is repeated; at most this often, since some kernels wait, and not if it took more than this many seconds, since a
busy system interrupts every long one."""
_LONGEST_HOLD = 0.2
"""The longest hold, in seconds. Launches that cannot be queued in it are not held: the kernel waits for the host."""


@dataclass(frozen=True)
class Sample:
    seconds: float
    """Seconds of one call."""
    held: bool = True
    """False: the stream ran dry while the batch was being queued, so the host's speed is in the time."""
    sm_hz: float | None = None
    busy: float | None = None
    """Seconds of processor time of one call, in all threads, without what other processes take."""


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Around:
    """Functions called just outside the timed region, all but `prepare` on the batch's own stream. On a GPU `before` is
    queued behind the hold, so that work that a kernel starts on another stream, without waiting for this one, comes too
    early for its inputs."""

    prepare: Callable[[], None] = _nothing
    """May wait for the device."""
    before: Callable[[], None] = _nothing
    after: Callable[[], None] = _nothing


_ALONE = Around()


class NotCapturable(AssayError):
    """The calls cannot be captured into a graph. CUDA's state in this process cannot be trusted after the attempt."""


def _batch(call: Call, first: int, count: int) -> Callable[[], None]:
    def run() -> None:
        for i in range(first, first + count):
            call(i)

    return run


class HostClock:
    __slots__ = ()  # so that no method of the one object can be replaced either
    method = "host clock"
    shortest_batch = 200e-6

    def sample(self, call: Call, first: int, count: int, around: Around = _ALONE) -> Sample:
        taken = self._once(call, first, count, around)
        for _ in range(_AGAIN if around is not _ALONE else 0):
            assert taken.busy is not None
            if taken.busy > _LEAST_BUSY * taken.seconds or taken.seconds * count > _SHORT:
                break
            taken = self._once(call, first, count, around)
        return taken

    def _once(self, call: Call, first: int, count: int, around: Around) -> Sample:
        around.prepare()
        around.before()
        if around is not _ALONE:
            bound.pause(_BREATH)
        worked, began = bound.busy(), bound.now()
        for i in range(first, first + count):
            call(i)
        ended, busy = bound.now(), bound.busy() - worked
        around.after()
        return Sample((ended - began) * 1e-9 / count, busy=busy * 1e-9 / count)

    def runner(self, call: Call, first: int, count: int) -> Callable[[], None]:
        """Return the batch as a function to run without timing it."""
        return _batch(call, first, count)

    def finish(self) -> None:
        """Wait until all that was started is done."""


class _EventClock:
    """Times a batch by events behind a hold: a kernel that spins for a given number of cycles. Unlike a flag that the
    host must set, it cannot deadlock with a kernel that waits for the device. Whether it sufficed is seen later."""

    __slots__ = ("_clock", "_hz", "hold")
    first_hold = 50e-6

    def __init__(self) -> None:
        import torch

        from assay.worker.sm_clock import SmClock

        self.hold = self.first_hold
        self._clock = SmClock.here()
        self._hz = 1e3 * torch.cuda.get_device_properties(0).clock_rate if _has_rate(torch) else 2e9

    def _between_events(self, queue: Callable[[], None], count: int, around: Around) -> Sample:
        start, end = bound.Event(enable_timing=True), bound.Event(enable_timing=True)
        stream = bound.current_stream()
        around.prepare()
        bound.synchronize()
        if self.hold:
            bound.spin(int(self.hold * self._hz))
        around.before()
        if self._clock:
            self._clock.read(0)
        bound.record(start, stream)
        queue()
        held = not bound.query(start)
        bound.record(end, stream)
        if self._clock:
            self._clock.read(1)
        around.after()
        bound.synchronize()
        return Sample(bound.elapsed(start, end) * 1e-3 / count, held, self._clock.hertz() if self._clock else None)

    def finish(self) -> None:
        bound.synchronize()


class GraphReplay(_EventClock):
    """Captures a graph for every sample, because the next sample goes on in the rotation of buffers. Its nodes follow
    each other faster than launches on a stream do."""

    __slots__ = ()
    method = "events around a replayed graph"
    shortest_batch = 400e-6
    first_hold = 200e-6

    def sample(self, call: Call, first: int, count: int, around: Around = _ALONE) -> Sample:
        run = self.runner(call, first, count)
        while True:
            taken = self._between_events(run, count, around)
            if taken.held or self.hold > _LONGEST_HOLD:
                return taken
            self.hold *= 4

    def runner(self, call: Call, first: int, count: int) -> Callable[[], None]:
        """Return the batch as a graph. Whatever the kernel starts outside the capture runs now, once, untimed."""
        graph = bound.Graph()
        bound.synchronize()
        try:
            bound.capture_begin(graph, capture_error_mode="thread_local")
            for i in range(first, first + count):
                call(i)
            bound.capture_end(graph)
        except Exception as error:
            said = str(error).strip() or type(error).__name__
            raise NotCapturable(said.splitlines()[0]) from None
        return lambda: bound.replay(graph)


class HeldStream(_EventClock):
    __slots__ = ()
    method = "events on a held stream"
    shortest_batch = 200e-6

    def sample(self, call: Call, first: int, count: int, around: Around = _ALONE) -> Sample:
        queue = self.runner(call, first, count)
        while True:
            taken = self._between_events(queue, count, around)
            if taken.held or not self.hold:
                return taken
            self.hold = 4 * self.hold if self.hold < _LONGEST_HOLD else 0.0  # a hold that does not help is left out

    def runner(self, call: Call, first: int, count: int) -> Callable[[], None]:
        """Return the batch as a function that queues it."""
        return _batch(call, first, count)


Watch = HostClock | GraphReplay | HeldStream


def _has_rate(torch: Any) -> bool:
    return hasattr(torch.cuda.get_device_properties(0), "clock_rate")


def call_time(call: Call, finish: Callable[[], None], count: int) -> float:
    """Return the mean seconds of a call from host to host: launch, run, wait; one after another."""
    began = bound.now()
    for _ in range(count):
        call(0)
        finish()
    return (bound.now() - began) * 1e-9 / count
