"""Medians over rounds and their intervals. Samples within a round share allocations, addresses and the moment, so only
rounds are independent observations: every interval is over rounds, by order statistics, for any distribution."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

_LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    median: float
    interval: tuple[float, float]

    @property
    def spread(self) -> float:
        """Half the interval, as a share of the median."""
        low, high = self.interval
        return (high - low) / 2 / self.median if self.median else math.inf

    def to_dict(self) -> dict[str, Any]:
        return {"median": self.median, "interval": list(self.interval)}


def estimate(rounds: Sequence[Sequence[float]]) -> Estimate:
    """Return the median of the rounds' medians and its interval."""
    return of_rounds([statistics.median(r) for r in rounds if r])


def of_rounds(values: Sequence[float]) -> Estimate:
    """Return the median and its interval for one value per round."""
    ordered = sorted(values)
    low = rank(len(ordered))
    return Estimate(statistics.median(ordered), (ordered[low], ordered[-1 - low]))


def rank(count: int) -> int:
    """Return how many of the smallest and of the largest values may be left out so that the rest still covers the
    median with 95 % probability. With fewer than nine values it is zero; even all of five cover it with only 94 %."""
    tails = accumulate(math.comb(count, left_out) / 2**count for left_out in range(count))
    return max(0, sum(1 - 2 * tail >= _LEVEL for tail in tails) - 1)


def ratio(over: Sequence[Sequence[float]], under: Sequence[Sequence[float]]) -> Estimate:
    """Return the estimated ratio `over` / `under`, taken round by round: both were measured in the same rounds."""
    pairs = [statistics.median(a) / statistics.median(b) for a, b in zip(over, under, strict=False) if a and b]
    return of_rounds(pairs)
