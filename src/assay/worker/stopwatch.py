"""Inside a worker: how long a batch of calls takes. On the CPU by the host's clock; on the GPU by events around a batch
that is ready before its first call starts, so that the host's pace is not in the time: captured into a graph or, where
a kernel cannot be captured, queued behind a kernel that holds the stream back."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assay.errors import AssayError

Call = Callable[[int], Any]
"""Run the kernel on the i-th set of buffers, modulo their number."""
_LONGEST_HOLD = 0.2
"""Seconds. Launches that cannot be queued in that time are not queued at all: the kernel waits for the host."""


@dataclass(frozen=True)
class Sample:
    seconds: float
    """Of one call."""
    held: bool = True
    """False: the stream ran dry while the batch was being queued, so the host's pace is in the time."""
    sm_hz: float | None = None


class NotCapturable(AssayError):
    """The calls cannot become a graph. CUDA's state in this process is not to be trusted after the attempt."""


class HostClock:
    method = "host clock"
    shortest_batch = 200e-6

    def sample(self, call: Call, first: int, count: int) -> Sample:
        began = time.perf_counter_ns()
        for i in range(first, first + count):
            call(i)
        return Sample((time.perf_counter_ns() - began) * 1e-9 / count)

    def finish(self) -> None:
        """Wait until all that was started is done."""


class _EventClock:
    """The hold is a kernel that spins for a given number of cycles: unlike a flag that the host must set, it cannot
    deadlock with a kernel that waits for the device. Whether it was long enough is seen afterwards."""

    hold = 50e-6

    def __init__(self) -> None:
        import torch

        from assay.worker.sm_clock import SmClock

        self._torch = torch
        self._clock = SmClock.here()
        self._hz = 1e3 * torch.cuda.get_device_properties(0).clock_rate if _has_rate(torch) else 2e9

    def _between_events(self, queue: Callable[[], None], count: int) -> Sample:
        cuda = self._torch.cuda
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        cuda.synchronize()
        if self.hold:
            cuda._sleep(int(self.hold * self._hz))
        if self._clock:
            self._clock.read(0)
        start.record()
        queue()
        held = not start.query()
        end.record()
        if self._clock:
            self._clock.read(1)
        cuda.synchronize()
        return Sample(start.elapsed_time(end) * 1e-3 / count, held, self._clock.hertz() if self._clock else None)

    def finish(self) -> None:
        self._torch.cuda.synchronize()


class GraphReplay(_EventClock):
    """A graph per sample: the next sample goes on in the rotation of buffers. Its nodes follow each other faster than
    launches on a stream do."""

    method = "events around a replayed graph"
    shortest_batch = 400e-6
    hold = 200e-6

    def sample(self, call: Call, first: int, count: int) -> Sample:
        while True:
            graph = self._captured(call, first, count)
            taken = self._between_events(graph.replay, count)
            if taken.held or self.hold > _LONGEST_HOLD:
                return taken
            self.hold *= 4

    def _captured(self, call: Call, first: int, count: int) -> Any:
        graph = self._torch.cuda.CUDAGraph()
        self._torch.cuda.synchronize()
        try:
            graph.capture_begin(capture_error_mode="thread_local")
            for i in range(first, first + count):
                call(i)
            graph.capture_end()
        except Exception as error:
            said = str(error).strip() or type(error).__name__
            raise NotCapturable(said.splitlines()[0]) from None
        return graph


class HeldStream(_EventClock):
    method = "events on a held stream"
    shortest_batch = 200e-6

    def sample(self, call: Call, first: int, count: int) -> Sample:
        def queue() -> None:
            for i in range(first, first + count):
                call(i)

        while True:
            taken = self._between_events(queue, count)
            if taken.held or not self.hold:
                return taken
            self.hold = 4 * self.hold if self.hold < _LONGEST_HOLD else 0.0  # a hold that helps nobody is left out


Watch = HostClock | GraphReplay | HeldStream


def _has_rate(torch: Any) -> bool:
    return hasattr(torch.cuda.get_device_properties(0), "clock_rate")


def call_time(call: Call, finish: Callable[[], None], count: int) -> float:
    """Host to host: launch, run, wait; one after another."""
    began = time.perf_counter_ns()
    for _ in range(count):
        call(0)
        finish()
    return (time.perf_counter_ns() - began) * 1e-9 / count
