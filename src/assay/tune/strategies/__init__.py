"""Strategies decide which configurations are measured, and in which order. Each is one small file with one class."""

from assay.tune.strategies.at_random import AtRandom
from assay.tune.strategies.exhaustive import Exhaustive
from assay.tune.strategies.guided import Guided
from assay.tune.strategies.problem import Problem, Strategy
from assay.tune.strategies.tpe import Tpe

__all__ = ["STRATEGIES", "Problem", "Strategy"]

STRATEGIES: dict[str, type[Strategy]] = {
    "exhaustive": Exhaustive,
    "random": AtRandom,
    "tpe": Tpe,
    "guided": Guided,
}
