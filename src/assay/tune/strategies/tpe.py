"""TPE: Optuna's tree-structured Parzen estimator, which models where good values of each tunable lie."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

from assay.errors import Lacking
from assay.tune.space import Configuration, Key, key
from assay.tune.strategies.problem import Problem, Strategy

_TRIES = 20
"""Proposals that may be known already or invalid before the first remaining candidate is taken instead."""


class Tpe(Strategy):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._trials: dict[Key, Any] = {}
        self._optuna  # noqa: B018  (whether it is installed is said before anything is measured)

    @cached_property
    def _optuna(self) -> Any:
        try:
            import optuna
        except ModuleNotFoundError:
            raise Lacking(
                "the strategy tpe needs Optuna",
                fix="pip install optuna (or kernel-assay[tune]), or choose --strategy guided, random or exhaustive",
            ) from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        return optuna

    @cached_property
    def _study(self) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", self._optuna.exceptions.ExperimentalWarning)
            sampler = self._optuna.samplers.TPESampler(seed=self.problem.seed, multivariate=True, constant_liar=True)
        study = self._optuna.create_study(direction="minimize", sampler=sampler)
        if self.problem.space.default:
            study.enqueue_trial(self._indices(self.problem.space.default))
        return study

    def _indices(self, configuration: Configuration) -> dict[str, int]:
        """Return the indices of the values in their lists, so that Optuna can use the similarity of adjacent values."""
        listed = {n: list(v) for n, v in self.problem.space.values.items()}
        return {n: listed[n].index(v) for n, v in configuration.items() if v in listed[n]}

    def _next(self) -> Configuration | None:
        left = {key(c): c for c in self.left}
        if not left:
            return None
        for _ in range(_TRIES):
            trial = self._study.ask()
            values = self.problem.space.values
            drawn = {n: v[trial.suggest_int(n, 0, len(v) - 1)] for n, v in values.items()}
            if key(drawn) in left:
                self._trials[key(drawn)] = trial
                return left[key(drawn)]
            known = self.times.get(key(drawn))
            state = self._optuna.trial.TrialState
            self._study.tell(trial, known, state=state.COMPLETE if known else state.PRUNED)
        return next(iter(left.values()))

    def tell(self, configuration: Configuration, seconds: float | None) -> None:
        super().tell(configuration, seconds)
        state = self._optuna.trial.TrialState
        trial = self._trials.pop(key(configuration), None)
        if trial is not None:
            self._study.tell(trial, seconds, state=state.COMPLETE if seconds else state.FAIL)
