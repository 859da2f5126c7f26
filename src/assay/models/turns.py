"""Arms timed in turn. Every round takes each of them, beginning with another one: drift of clocks and neighbours hits
all alike, and a ratio can be taken round by round."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from assay.models.clock import WaitedClock
from assay.worker.stopwatch import HeldStream, HostClock

NEEDED = 6
"""Rounds, at least: all of five cover the median with only 94 %."""
_MOST = 4096
"""Calls in a sample at most."""

Clock = HostClock | WaitedClock | HeldStream


@dataclass(frozen=True)
class Arm:
    name: str
    call: Callable[[], Any]
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Entered around each batch of calls, outside the clock."""


@dataclass(frozen=True)
class Turns:
    samples: dict[str, list[list[float]]]
    """Seconds of one call: arm → round → sample."""
    batch: dict[str, int]
    """Calls in a sample."""


def sample(arm: Arm, clock: Clock, count: int) -> float:
    with arm.around():
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
    found: dict[str, list[list[float]]] = {arm.name: [] for arm in arms}
    for number in range(max(taken.values(), default=0)):
        first = number % len(arms)
        for arm in (*arms[first:], *arms[:first]):
            if number < taken[arm.name]:
                found[arm.name].append([sample(arm, clock, batch[arm.name]) for _ in range(times[arm.name])])
    return Turns(found, batch)
