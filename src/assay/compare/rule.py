"""The rule of docs/compare.md: whether two sets of rounds show a change."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from assay.compare.rank_sum import p_value, shift

ALPHA = 0.05
"""Probability of even one false alarm in a whole comparison."""
MATTERS = 0.01
"""A change smaller than this share does not matter."""
CLOCKS = 0.01
"""Clocks that differ by more than this share may explain a change."""
FEWEST = 5
"""The fewest rounds on each side."""


class Verdict(StrEnum):
    SAME = "SAME"
    FASTER = "FASTER"
    SLOWER = "SLOWER"
    AMBIGUOUS = "AMBIGUOUS"


@dataclass(frozen=True)
class Side:
    """One side of a cell: a time for each round, in seconds, and the SM clock during them, if known."""

    rounds: Sequence[float]
    hertz: float | None = None


@dataclass(frozen=True)
class Change:
    verdict: Verdict
    ratio: float
    """New over old."""
    interval: tuple[float, float]
    """Interval of the ratio. The intervals of a comparison cover the ratios of all its cells at once."""
    p: float
    """The probability of such rounds if nothing changed."""
    why: str


def judge(cells: Sequence[tuple[Side, Side]]) -> list[Change]:
    """Return the change of each cell (old, new) of one comparison. All cells share the probability of a false alarm."""
    return [_one(old, new, ALPHA / len(cells)) for old, new in cells]


def _one(old: Side, new: Side, alpha: float) -> Change:
    if min(len(old.rounds), len(new.rounds)) < FEWEST:
        few = f"{len(old.rounds)} and {len(new.rounds)} rounds: at least {FEWEST} on each side are needed"
        return Change(Verdict.AMBIGUOUS, math.nan, (math.nan, math.nan), 1.0, few)
    first = _answer(old.rounds, new.rounds, alpha)
    if not old.hertz or not new.hertz or abs(new.hertz / old.hertz - 1) <= CLOCKS:
        return first
    second = _answer([r * old.hertz for r in old.rounds], [r * new.hertz for r in new.rounds], alpha)
    clocks = f"the SM clock was {old.hertz / 1e6:.0f} MHz, then {new.hertz / 1e6:.0f} MHz"
    if second.verdict is first.verdict:
        return replace(first, why=f"{first.why}; {clocks}, in cycles the same")
    why = f"{clocks}: in seconds {first.verdict}, in cycles {second.verdict}"
    return replace(first, verdict=Verdict.AMBIGUOUS, why=why)


def _answer(old: Sequence[float], new: Sequence[float], alpha: float) -> Change:
    p = p_value(old, new)
    logarithms = shift([math.log(v) for v in old], [math.log(v) for v in new], 1 - alpha)
    if logarithms is None:
        few = f"too few rounds ({len(old)} and {len(new)}) for so many cells"
        return Change(Verdict.AMBIGUOUS, math.nan, (math.nan, math.nan), p, few)
    middle, low, high = (math.exp(v) for v in logarithms)
    interval = f"{low - 1:+.1%} to {high - 1:+.1%}, p = {p:.2g}"
    if low >= 1 + MATTERS or high <= 1 - MATTERS:
        verdict = Verdict.SLOWER if middle > 1 else Verdict.FASTER
        return Change(verdict, middle, (low, high), p, f"{abs(middle - 1):.2%} {verdict.lower()}: {interval}")
    if low >= 1 - MATTERS and high <= 1 + MATTERS:
        return Change(Verdict.SAME, middle, (low, high), p, f"within ±{max(1 - low, high - 1):.2%}")
    return Change(Verdict.AMBIGUOUS, middle, (low, high), p, f"anything from {interval}")
