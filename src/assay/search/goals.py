"""The goals by which trials are compared, and how far below the control's accuracy a model may be.

A study with one goal has one winner, the best of the allowed trials. A study with several has a Pareto front: the
allowed trials that no other allowed trial dominates."""

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
    """Allowed percentage points below the control's validation accuracy; None: any number."""

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
        """Return by how many percentage points the trial misses the limit; it is allowed at 0 or less."""
        if self.points is None or control is None:
            return 0.0
        # Accuracies are fractions of a whole number of items: equal ones must not differ by a rounding error.
        return round(100 * (control["accuracy"] - judged["accuracy"]) - self.points, 9)

    def chosen(self, trials: Sequence[tuple[int, Mapping[str, Any]]], control: Mapping[str, Any] | None) -> list[int]:
        """Return the winner's number, or those of the front, from pairs (number, results); empty if no trial is
        allowed. Ties go to the more accurate trial, then to the earlier one."""
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
        """Return the values with signs such that smaller is better."""
        signs = [-1.0 if goal.direction == "maximize" else 1.0 for goal in self.goals]
        return tuple(sign * value for sign, value in zip(signs, self.values(judged), strict=True))
