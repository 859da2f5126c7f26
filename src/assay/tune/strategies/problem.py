"""The input of a strategy, and the interface that it implements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assay.tune.space import Configuration, Key, Space, key


@dataclass(frozen=True)
class Problem:
    space: Space
    candidates: Sequence[Configuration]
    """The configurations that may be measured, the most promising by the static model first."""
    most: int
    """The most configurations that are measured."""
    estimates: Mapping[Key, float] = field(default_factory=dict)
    """Seconds estimated by the static model; empty without one."""
    seed: int = 0


class Strategy:
    """Proposes configurations and learns their times. The base class keeps track of both."""

    @property
    def batch(self) -> int:
        """How many configurations to request at once. They are timed in the same rounds, each in its own process, which
        on a GPU has its own context."""
        return 8

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.candidates = {key(c): c for c in problem.candidates}
        self.times: dict[Key, float | None] = {}
        """Seconds of the configurations measured so far; None for one that failed."""
        self._proposed: set[Key] = set()

    def propose(self, count: int) -> list[Configuration]:
        """Return up to `count` configurations to measure next, without repeats; an empty list ends the search."""
        chosen: list[Configuration] = []
        while len(chosen) < count and len(self._proposed) < self.problem.most:
            if (configuration := self._next()) is None:
                break
            self._proposed.add(key(configuration))
            chosen.append(configuration)
        return chosen

    def tell(self, configuration: Configuration, seconds: float | None) -> None:
        """Record a configuration's time, or None if it failed."""
        self._proposed.add(key(configuration))
        self.times[key(configuration)] = seconds

    @property
    def left(self) -> list[Configuration]:
        """The candidates not yet proposed, in order."""
        return [c for k, c in self.candidates.items() if k not in self._proposed]

    def _next(self) -> Configuration | None:
        """Return one configuration that was not yet proposed, or None."""
        raise NotImplementedError
