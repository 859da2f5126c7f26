"""Random: the default first, then configurations drawn uniformly from the whole space."""

import random
from functools import cached_property

from assay.tune.space import Configuration
from assay.tune.strategies.problem import Strategy


class AtRandom(Strategy):
    @cached_property
    def _rng(self) -> random.Random:
        return random.Random(self.problem.seed)

    def _next(self) -> Configuration | None:
        left = self.left
        default = self.problem.space.default
        if default in left:
            return default
        return self._rng.choice(left) if left else None
