"""The time and memory of a model's calls; arms are timed in turn.

Every round times each arm, and each round begins with a different one. Drifting clocks and other load affect all arms
alike, and ratios can be taken round by round."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from assay.worker.stopwatch import Call, HeldStream, HostClock, Sample

NEEDED = 6
"""Minimum number of rounds: the range of five covers the median with a probability of only 94 %."""
_MOST = 4096
"""Maximum number of calls in a sample."""


@dataclass(frozen=True)
class WaitedClock:
    """The host's clock, from the first launch of a batch until the device has finished the last. Unlike the other GPU
    clocks, it includes launches."""

    each: bool = False
    """Wait for the device after every call. This measures latency, when each result is needed before the next call;
    otherwise the host runs ahead of the device, which measures throughput."""
    shortest_batch: ClassVar[float] = 2e-3

    @property
    def method(self) -> str:
        return "host clock, the device waited for" + (" after every call" if self.each else "")

    def sample(self, call: Call, first: int, count: int) -> Sample:
        each = self.each
        self.finish()
        began = time.perf_counter_ns()
        for i in range(first, first + count):
            call(i)
            if each:
                self.finish()
        if not each:
            self.finish()
        return Sample((time.perf_counter_ns() - began) * 1e-9 / count)

    def finish(self) -> None:
        torch.cuda.synchronize()


Clock = HostClock | WaitedClock | HeldStream


@dataclass(frozen=True)
class Arm:
    name: str
    call: Callable[[], Any]


@dataclass(frozen=True)
class Turns:
    samples: dict[str, list[list[float]]]
    """Seconds of one call: arm → round → sample."""
    batch: dict[str, int]
    """Calls in a sample, by arm."""


def sample(arm: Arm, clock: Clock, count: int) -> float:
    return clock.sample(lambda i: arm.call(), 0, count).seconds


def in_turn(arms: Sequence[Arm], clock: Clock, rounds: int, budget: float, samples: int = 3) -> Turns:
    """Time arms, which must be warm, in turn. `budget`: seconds for each arm, exceeded if NEEDED rounds take longer."""
    batch, taken, times = {}, {}, {}
    for arm in arms:
        guess = max(sample(arm, clock, 2), 1e-9)
        batch[arm.name] = max(1, min(_MOST, math.ceil(clock.shortest_batch / guess)))
        affordable = budget / (guess * batch[arm.name])
        taken[arm.name] = max(NEEDED, min(rounds, int(affordable)))
        times[arm.name] = max(1, min(samples, int(affordable / taken[arm.name])))
    seconds: dict[str, list[list[float]]] = {arm.name: [] for arm in arms}
    for number in range(max(taken.values(), default=0)):
        first = number % len(arms)
        for arm in (*arms[first:], *arms[:first]):
            if number < taken[arm.name]:
                seconds[arm.name].append([sample(arm, clock, batch[arm.name]) for _ in range(times[arm.name])])
    return Turns(seconds, batch)


def peak(call: Callable[[], Any], device: str) -> int:
    """Return the peak bytes that one call holds beyond those held before it, its output included, as counted by
    PyTorch's allocators; memory that libraries allocate themselves is not seen. The call must be warm, because what a
    first call leaves allocated is not part of a call."""
    return _cuda(call) if device == "cuda" else _cpu(call)


def _cuda(call: Callable[[], Any]) -> int:
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated() - before)


def _cpu(call: Callable[[], Any]) -> int:
    """Compute the peak from the profiler's record of every allocation and release."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        call()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return int(most)
