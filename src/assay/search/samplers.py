"""Samplers, which choose the next point. Every argument is set here instead of left to Optuna's defaults, and all of
them are in the records."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError
from assay.search import space as spaces
from assay.search.storage import optuna

if TYPE_CHECKING:
    from assay.search.space import Space

SAMPLERS = ("grid", "random", "tpe", "nsga2")
LARGEST_GRID = 20_000
"""Points; Optuna keeps all of them in memory and in every trial."""
_TPE = {
    "prior_weight": 1.0,
    "consider_magic_clip": True,
    "consider_endpoints": False,
    "n_startup_trials": 10,
    "n_ei_candidates": 24,
    "multivariate": True,
    "group": True,
    "warn_independent_sampling": False,
    "constant_liar": True,
    "categorical_distance_func": None,
}
_TPE_RULES = {"gamma": "min(ceil(n / 10), 25)", "weights": "1 for the last 25, rising from 1/n before"}
_NSGA2 = {"population_size": 16, "mutation_prob": None, "crossover_prob": 0.9, "swapping_prob": 0.5}
Constraints = Callable[[Any], Sequence[float]]


def verify(name: str) -> None:
    if name not in SAMPLERS:
        raise UsageError(f"no sampler called '{name}'", fix=f"--sampler {', '.join(SAMPLERS)}")


def arguments(name: str, seed: int) -> dict[str, Any]:
    """Return all arguments of the sampler, for records."""
    own: dict[str, dict[str, Any]] = {
        "grid": {"order": "shuffled"},
        "random": {},
        "tpe": _TPE | _TPE_RULES,
        "nsga2": _NSGA2 | {"crossover": "UniformCrossover"},
    }
    return {"name": name, "seed": seed, **own[name]}


def sampler(name: str, seed: int, space: Space, constraints: Constraints | None, begun: int = 0) -> Any:
    """`begun`: number of trials that the study already has. It is part of the seed, so that a resumed study does not
    draw the same points again. The order of a grid is the same for all processes that work on it."""
    samplers = optuna().samplers
    later = seed + 1_000_003 * begun
    match name:
        case "grid":
            return _grid(samplers, seed, space)
        case "random":
            return samplers.RandomSampler(seed=later)
        case "tpe":
            with warnings.catch_warnings():
                # Some of the arguments are deprecated; they are set explicitly as long as they exist.
                warnings.simplefilter("ignore", FutureWarning)
                return samplers.TPESampler(
                    seed=later, gamma=_gamma, weights=_weights, constraints_func=constraints, **_TPE
                )
        case "nsga2":
            crossover = samplers.nsgaii.UniformCrossover(swapping_prob=_NSGA2["swapping_prob"])
            return samplers.NSGAIISampler(
                seed=later,
                constraints_func=constraints,
                crossover=crossover,
                elite_population_selection_strategy=None,
                child_generation_strategy=None,
                after_trial_strategy=None,
                **_NSGA2,
            )
    raise AssertionError(name)


def _grid(samplers: Any, seed: int, space: Space) -> Any:
    if spaces.size(space, LARGEST_GRID) is None or spaces.size(_apart(space), LARGEST_GRID) is None:
        raise UsageError(
            f"the grid has more than {LARGEST_GRID:,} points",
            fix="search fewer knobs or values, or choose --sampler tpe, random or nsga2",
        )

    class Grid(samplers.GridSampler):
        def after_trial(self, *_: Any) -> None:
            """Do nothing: the study decides when it ends, and Optuna's hook would stop a loop that is not running."""

    return Grid({name: list(range(len(knob.values))) for name, knob in space.items()}, seed=seed)


def _apart(space: Space) -> Space:
    """Return the same knobs without dependencies, as in Optuna's grid."""
    return {name: replace(knob, where={}) for name, knob in space.items()}


def _gamma(trials: int) -> int:
    """Return how many of the trials count as good."""
    return min(math.ceil(0.1 * trials), 25)


def _weights(trials: int) -> Any:
    """Return the weights of the trials, oldest first."""
    import numpy as np

    if trials == 0:
        return np.asarray([])
    if trials < 25:
        return np.ones(trials)
    return np.concatenate([np.linspace(1.0 / trials, 1.0, num=trials - 25), np.ones(25)])
