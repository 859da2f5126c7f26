"""Guided: first what the static model promises, spread over the space; then around the best that was measured.

A model of the logarithm of the time, one term for each value of each tunable and one for the static estimate, is fitted
to what was measured. It orders the neighbours of the best, and in every third step the whole space."""

from __future__ import annotations

import math
from functools import cached_property

from assay.tune.space import Configuration, Key, key
from assay.tune.strategies.problem import Problem, Strategy

_FIRST = 0.4
"""The share of the measurements that go by the static model alone."""
_RIDGE = 0.3
"""How strongly the terms of the fitted model are held near zero: there are more of them than measurements."""
_BEST = 3
"""How many of the best configurations have their neighbours tried."""


class Guided(Strategy):
    batch = 4  # fewer: each batch is chosen by what the ones before it showed

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._step = 0

    def _next(self) -> Configuration | None:
        left = self.left
        if not left:
            return None
        self._step += 1
        first = max(3, math.ceil(_FIRST * self.problem.most))
        known = {k: t for k, t in self.times.items() if t}
        if len(self._proposed) < first or len(known) < 2:
            return self._promising(left)
        predicted = self._predicted(known)
        near = self._near(known, left)
        pool = left if self._step % 3 == 0 or not near else near
        return min(pool, key=lambda c: predicted[key(c)])

    def _promising(self, left: list[Configuration]) -> Configuration:
        """Return the default first, then the best by the static model that is not close to what was proposed."""
        space = self.problem.space
        if space.default in left:
            return space.default
        chosen = [c for c in self.problem.candidates if key(c) in self._proposed]
        upper = left[: max(1, len(left) // 2)] if self.problem.estimates else left
        for apart in (3, 2):
            for configuration in upper:
                if all(space.far(configuration, other) >= apart for other in chosen):
                    return configuration
        return left[0]

    def _near(self, known: dict[Key, float], left: list[Configuration]) -> list[Configuration]:
        """Return the neighbours of the best configurations that are left; of the very best first."""
        waiting = {key(c): c for c in left}
        for best in sorted(known, key=lambda k: known[k])[:_BEST]:
            near = [waiting[key(c)] for c in self.problem.space.neighbours(self._all[best]) if key(c) in waiting]
            if near:
                return near
        return []

    @cached_property
    def _all(self) -> dict[Key, Configuration]:
        return {key(c): c for c in self.problem.candidates}

    @cached_property
    def _features(self) -> dict[Key, list[float]]:
        """Return a number for each term: 1 for the value that a tunable has, and the logarithm of the estimate."""
        names = [(n, repr(v)) for n, values in self.problem.space.values.items() for v in values]
        estimates = self.problem.estimates
        logs = {k: math.log(e) for k, e in estimates.items() if e > 0 and math.isfinite(e)}
        middle = sum(logs.values()) / len(logs) if logs else 0.0
        rows = {}
        for k, c in self._all.items():
            has = {(n, repr(v)) for n, v in c.items()}
            rows[k] = [float(name in has) for name in names] + [2.0 * (logs.get(k, middle) - middle)]
        return rows

    def _predicted(self, known: dict[Key, float]) -> dict[Key, float]:
        """Return the logarithm of the time of every candidate, by a ridge regression on what was measured."""
        import numpy as np

        seen = [k for k in known if k in self._features]
        x = np.array([self._features[k] for k in seen])
        y = np.log(np.array([known[k] for k in seen]))
        mean = float(y.mean())
        weights = np.linalg.solve(x.T @ x + _RIDGE * np.eye(x.shape[1]), x.T @ (y - mean))
        every = list(self._features)
        values = np.array([self._features[k] for k in every]) @ weights
        return dict(zip(every, (mean + values).tolist(), strict=True))
