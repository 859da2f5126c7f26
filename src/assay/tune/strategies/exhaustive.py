"""Exhaustive: every configuration, the most promising first."""

from assay.tune.space import Configuration
from assay.tune.strategies.problem import Strategy


class Exhaustive(Strategy):
    def _next(self) -> Configuration | None:
        return next(iter(self.left), None)
