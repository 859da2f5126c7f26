"""What a call of a model takes: seconds, by arms that are timed in turn, and bytes.

Every round takes each arm, beginning with another one: drift of clocks and neighbours hits all alike, and a ratio can
be taken round by round."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from assay.worker.stopwatch import Call, HeldStream, HostClock, Sample

NEEDED = 6
"""Rounds, at least: all of five cover the median with only 94 %."""
_MOST = 4096
"""Calls in a sample at most."""


@dataclass(frozen=True)
class WaitedClock:
    """The host's, from the first launch until the device has done the last of a batch: launches count, which the other
    clocks of a GPU leave out."""

    each: bool = False
    """The device is waited for after every call: latency, for who needs each result before the next call. Otherwise the
    host runs ahead of the device: throughput."""
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
    """Calls in a sample."""


def sample(arm: Arm, clock: Clock, count: int) -> float:
    return clock.sample(lambda i: arm.call(), 0, count).seconds


def in_turn(arms: Sequence[Arm], clock: Clock, rounds: int, budget: float, samples: int = 3) -> Turns:
    """Arms are warm already. `budget` is in seconds for each; but NEEDED rounds are taken, whatever they cost."""
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
    """The most bytes that one call holds beyond what was there before it, its output included, by PyTorch's allocators;
    what libraries take for themselves is not seen. The call must be warm: what stays from a first is not its own."""
    return _cuda(call) if device == "cuda" else _cpu(call)


def _cuda(call: Callable[[], Any]) -> int:
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated() - before)


def _cpu(call: Callable[[], Any]) -> int:
    """By the profiler's record of every allocation and release."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        call()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return int(most)
