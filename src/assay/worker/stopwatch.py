"""Inside a worker: how long a batch of calls takes. On the CPU by the host's clock; on the GPU by events on a stream
that is held back until the whole batch is queued, so that the host's pace is not in the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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


class HeldStream:
    """The hold is a kernel that spins for a given number of cycles: unlike a flag that the host must set, it cannot
    deadlock with a kernel that waits for the device. Whether it was long enough is seen afterwards."""

    method = "events on a held stream"
    shortest_batch = 200e-6

    def __init__(self) -> None:
        import torch

        from assay.worker.sm_clock import SmClock

        self._torch = torch
        self._clock = SmClock.here()
        self._hold = 50e-6
        self._hz = 1e3 * torch.cuda.get_device_properties(0).clock_rate if _has_rate(torch) else 2e9

    def sample(self, call: Call, first: int, count: int) -> Sample:
        while True:
            taken = self._once(call, first, count)
            if taken.held or not self._hold:
                return taken
            self._hold = 4 * self._hold if self._hold < _LONGEST_HOLD else 0.0  # a hold that helps nobody is left out

    def _once(self, call: Call, first: int, count: int) -> Sample:
        cuda = self._torch.cuda
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        cuda.synchronize()
        if self._hold:
            cuda._sleep(int(self._hold * self._hz))
        if self._clock:
            self._clock.read(0)
        start.record()
        for i in range(first, first + count):
            call(i)
        held = not start.query()
        end.record()
        if self._clock:
            self._clock.read(1)
        cuda.synchronize()
        return Sample(start.elapsed_time(end) * 1e-3 / count, held, self._clock.hertz() if self._clock else None)

    def finish(self) -> None:
        self._torch.cuda.synchronize()


def _has_rate(torch: Any) -> bool:
    return hasattr(torch.cuda.get_device_properties(0), "clock_rate")


def call_time(call: Call, finish: Callable[[], None], count: int) -> float:
    """Host to host: launch, run, wait; one after another."""
    began = time.perf_counter_ns()
    for _ in range(count):
        call(0)
        finish()
    return (time.perf_counter_ns() - began) * 1e-9 / count
