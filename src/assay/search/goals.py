"""What makes one trial better than another: goals, and how far below the control a model may be.

A study with one goal has one winner: of the trials that are allowed, the best; with several it has a front: those that
no other allowed trial beats in one goal without losing in another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.errors import UsageError
from assay.search.evidence import Goal

DIRECTIONS = {"accuracy": "maximize", "bits": "minimize", "weights": "minimize", "latency": "minimize"}


@dataclass(frozen=True)
class Goals:
    goals: tuple[Goal, ...]
    points: float | None = None
    """Percentage points below the control's validation accuracy that are allowed; None: any number."""

    @classmethod
    def of(cls, names: Sequence[str], points: float | None) -> Goals:
        if not names:
            raise UsageError("a search needs a goal", fix=f"--goal with one or more of {', '.join(DIRECTIONS)}")
        for name in names:
            if name not in DIRECTIONS:
                raise UsageError(f"no goal called '{name}'", fix=f"--goal with one or more of {', '.join(DIRECTIONS)}")
        if len(set(names)) < len(names):
            raise UsageError("a goal is named twice", fix=f"--goal {','.join(dict.fromkeys(names))}")
        if points is not None and points < 0:
            raise UsageError(f"{points:g} points below the control", fix="--points with 0 or more")
        return cls(tuple(Goal(name, DIRECTIONS[name]) for name in names), points)

    @property
    def directions(self) -> list[str]:
        return [goal.direction for goal in self.goals]

    def values(self, judged: Mapping[str, Any]) -> list[float]:
        return [float(judged[goal.name]) for goal in self.goals]

    def shortfall(self, judged: Mapping[str, Any], control: Mapping[str, Any] | None) -> float:
        """Percentage points that are missing; 0 or less: it is allowed."""
        if self.points is None or control is None:
            return 0.0
        # Shares of a whole number of items: what is equal must not differ by a rounding error.
        return round(100 * (control["accuracy"] - judged["accuracy"]) - self.points, 9)

    def chosen(self, trials: Sequence[tuple[int, Mapping[str, Any]]], control: Mapping[str, Any] | None) -> list[int]:
        """The winner, or the front, of (number, what was judged); none where none is allowed. Of two that are equally
        good the more accurate one wins, then the earlier."""
        allowed = [(number, judged) for number, judged in trials if self.shortfall(judged, control) <= 0]
        if not allowed:
            return []
        costs = {number: self._costs(judged) for number, judged in allowed}
        accuracy = {number: judged["accuracy"] for number, judged in allowed}
        best_first = sorted(costs, key=lambda n: (costs[n], -accuracy[n], n))
        if len(self.goals) == 1:
            return best_first[:1]
        front: list[int] = []
        for number in best_first:
            if not any(all(a <= b for a, b in zip(costs[other], costs[number], strict=True)) for other in front):
                front.append(number)
        return front

    def _costs(self, judged: Mapping[str, Any]) -> tuple[float, ...]:
        """The smaller, the better."""
        signs = [-1.0 if goal.direction == "maximize" else 1.0 for goal in self.goals]
        return tuple(sign * value for sign, value in zip(signs, self.values(judged), strict=True))
