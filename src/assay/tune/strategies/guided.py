"""Guided: measures first what the static model ranks high, spread over the space; then the configuration for which a
model of the measured times expects the largest improvement."""

from __future__ import annotations

import math
from functools import cached_property

from assay.tune.space import Configuration
from assay.tune.strategies.problem import Strategy
from assay.tune.strategies.surrogate import Surrogate

_FIRST = 0.35
"""The share of the measurements that are chosen by the static model alone."""
_MODELLED = 4096
"""The most configurations whose times are modelled."""
_MOST, _LATER = 12, 5
"""The most configurations of a batch, and the size of a batch that is chosen by earlier times."""


class Guided(Strategy):
    @property
    def batch(self) -> int:
        """The first configurations at once, since none depends on another's time; later fewer, chosen by all earlier
        times."""
        return max(_LATER, min(_MOST, self._first - len(self._proposed)))

    @property
    def _first(self) -> int:
        return max(3, math.ceil(_FIRST * self.problem.most))

    def _next(self) -> Configuration | None:
        left = self.left
        if not left:
            return None
        if len(self._proposed) < self._first:
            return self._promising(left)
        return self._improving() or self._promising(left)

    def _promising(self, left: list[Configuration]) -> Configuration:
        """Return the default first, then the best by the static model that is not close to what was proposed."""
        space = self.problem.space
        if space.default in left:
            return space.default
        chosen = [c for k, c in self.candidates.items() if k in self._proposed]
        upper = left[: max(1, len(left) // 2)] if self.problem.estimates else left
        for apart in (3, 2):
            for configuration in upper:
                if all(space.far(configuration, other) >= apart for other in chosen):
                    return configuration
        return left[0]

    def _improving(self) -> Configuration | None:
        """Return the configuration with the largest expected improvement; None if too little was measured. Proposed
        configurations without a time count with their expected time."""
        model = self._surrogate
        known = {k: math.log(t) for k, t in self.times.items() if t and k in model}
        left = [k for k in model.keys if k not in self._proposed]
        if len(known) < 2 or not left:
            return None
        expected = model.expected(known, [k for k in self._proposed if k in model and k not in self.times])
        best = min(known.values())
        return self.candidates[max(left, key=lambda k: _improvement(best, *expected[k]))]

    @cached_property
    def _surrogate(self) -> Surrogate:
        """The model of the times. For a very large space it covers the most promising configurations or, without
        estimates, an even sample."""
        listed = self.problem.candidates
        listed = listed[:_MODELLED] if self.problem.estimates else listed[:: -(-len(listed) // _MODELLED)]
        return Surrogate(self.problem.space, listed, self.problem.estimates)


def _improvement(best: float, expected: float, deviation: float) -> float:
    """Return the expected improvement over the best, for a normal distribution."""
    if deviation <= 0:
        return max(0.0, best - expected)
    z = (best - expected) / deviation
    below, density = 0.5 * math.erfc(-z / math.sqrt(2)), math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return (best - expected) * below + deviation * density
