"""A Gaussian process over the configurations of a space: predicts a time and its uncertainty.

The logarithm of a time is the sum of a multiple of the static estimate's logarithm, of a term for each tunable, one for
each pair of tunables, and one for all of them together. Adjacent values in a list of numbers have similar terms. The
sizes of the terms are those that make the times seen so far most likely."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.tune.space import Configuration, Key, Space, apart, key, ordered

if TYPE_CHECKING:
    import numpy as np

_NOISE = 0.003
"""The spread between two measurements of the same time, as a share of it."""
_REACH = 2.0
"""The decay length of the similarity of two values, in places in a list of numbers."""
_SLOPE = 0.7
"""How much of a difference in the static estimate carries over to the time; 1 would be all of it."""
_SINGLE, _PAIRS, _ALL = (0.03, 0.1, 0.3), (0.01, 0.03, 0.1), (0.01, 0.05)
"""The sizes tried for the terms."""
_SIZES = [(1.0, _SLOPE, *sizes) for sizes in itertools.product(_SINGLE, _PAIRS, _ALL)]
"""Sizes of the constant, of the estimate's multiple, and of the other terms."""
_SEEN = 150
"""The most times that are used, the fastest ones: the cost grows with the cube of their number."""


@dataclass(frozen=True)
class _Fit:
    seen: Mapping[Key, float]
    middle: float
    sizes: Sequence[float]
    at: Any
    """Indices of the configurations seen."""
    y: Any
    """Logarithms of their times, minus `middle`."""
    chol: Any
    across: Any
    mean: Any
    """Predicted logarithms of all configurations' times, minus `middle`."""


class Surrogate:
    def __init__(self, space: Space, candidates: Sequence[Configuration], estimates: Mapping[Key, float]) -> None:
        import numpy as np

        self.keys = [key(c) for c in candidates]
        self._place = {k: i for i, k in enumerate(self.keys)}
        self._alike: list[np.ndarray[Any, Any]] = []
        """For each tunable, the similarity of each two of its values."""
        indices = []
        for name in space.values:
            values = _values(space, name, candidates)
            where = {repr(v): at for at, v in enumerate(values)}
            indices.append([where[repr(c[name])] for c in candidates])
            self._alike.append(np.array([[_alike(values, a, b) for b in values] for a in values]))
        self._indices = np.array(indices).reshape(len(indices), len(candidates))
        logs = {k: math.log(e) for k, e in estimates.items() if e > 0 and math.isfinite(e)}
        middle = sum(logs.values()) / len(logs) if logs else 0.0
        self._estimates = np.array([logs.get(k, middle) - middle for k in self.keys])
        self._fit: _Fit | None = None

    def __contains__(self, this: Key) -> bool:
        return this in self._place

    def expected(self, seen: Mapping[Key, float], waiting: Sequence[Key] = ()) -> dict[Key, tuple[float, float]]:
        """Return, for every candidate, the expected logarithm of its time and the standard deviation. `seen` has
        logarithms of times. `waiting` are candidates that count as seen, with their expected time."""
        import numpy as np

        if self._fit is None or self._fit.seen != seen:
            self._fit = self._fitted(dict(seen))
        fit = self._fit
        if waiting:
            more = np.array([self._place[k] for k in waiting])
            fit = self._with(fit, np.concatenate([fit.at, more]), np.concatenate([fit.y, fit.mean[more]]))
        variance = self._own(fit.sizes) - (np.linalg.solve(fit.chol, fit.across.T) ** 2).sum(axis=0)
        deviation = np.sqrt(np.maximum(variance, 1e-12))
        return dict(zip(self.keys, zip((fit.middle + fit.mean).tolist(), deviation.tolist(), strict=True), strict=True))

    def _fitted(self, seen: dict[Key, float]) -> _Fit:
        """Fit the sizes of the terms by maximum likelihood."""
        import numpy as np

        fastest = sorted(seen, key=lambda k: seen[k])[:_SEEN]
        at, times = np.array([self._place[k] for k in fastest]), np.array([seen[k] for k in fastest])
        middle = float(times.mean())
        parts = self._parts(at)
        own = [part[at] for part in parts]
        sizes = max(_SIZES, key=lambda sizes: _likely(_factor(sizes, own), times - middle))
        return _Fit(seen, middle, sizes, at, times - middle, *_solved(sizes, parts, own, times - middle))

    def _with(self, fit: _Fit, at: Any, y: Any) -> _Fit:
        """Return the fit with the same sizes and more times."""
        parts = self._parts(at)
        return _Fit(fit.seen, fit.middle, fit.sizes, at, y, *_solved(fit.sizes, parts, [p[at] for p in parts], y))

    def _parts(self, at: Any) -> list[Any]:
        """Return the similarity of all configurations to those at `at`, by kind of term."""
        import numpy as np

        alike = [a[np.ix_(i, i[at])] for a, i in zip(self._alike, self._indices, strict=True)]
        shape = (len(self.keys), len(at))
        total, squares, product = np.zeros(shape), np.zeros(shape), np.ones(shape)
        for each in alike:
            total, squares, product = total + each, squares + each**2, product * each
        estimates = np.outer(self._estimates, self._estimates[at])
        return [np.ones(shape), estimates, total, (total**2 - squares) / 2, product]

    def _own(self, sizes: Sequence[float]) -> Any:
        """Return the prior variance of each configuration."""
        count = len(self._alike)
        constant, slope, single, pairs, whole = (size**2 for size in sizes)
        return constant + slope * self._estimates**2 + single * count + pairs * count * (count - 1) / 2 + whole


def _factor(sizes: Sequence[float], own: Sequence[Any]) -> Any:
    """Return the Cholesky factor of the covariance of the times seen."""
    import numpy as np

    return np.linalg.cholesky(_weighted(sizes, own) + _NOISE**2 * np.eye(len(own[0])))


def _likely(chol: Any, y: Any) -> float:
    """Return the log-likelihood of these times, up to a constant."""
    import numpy as np

    return -0.5 * float((np.linalg.solve(chol, y) ** 2).sum()) - float(np.log(np.diag(chol)).sum())


def _solved(sizes: Sequence[float], parts: Sequence[Any], own: Sequence[Any], y: Any) -> tuple[Any, Any, Any]:
    """Return the data for predictions: the factor, the covariance of all configurations with those seen, and all
    means."""
    import numpy as np

    chol, across = _factor(sizes, own), _weighted(sizes, parts)
    return chol, across, across @ np.linalg.solve(chol.T, np.linalg.solve(chol, y))


def _weighted(sizes: Sequence[float], parts: Sequence[Any]) -> Any:
    return sum(size**2 * part for size, part in zip(sizes, parts, strict=True))


def _values(space: Space, name: str, candidates: Sequence[Configuration]) -> list[Any]:
    """Return the values of a tunable, including the default's if it is not listed."""
    listed = {repr(v): v for v in space.values[name]}
    return list((listed | {repr(c[name]): c[name] for c in candidates}).values())


def _alike(values: Sequence[Any], one: Any, other: Any) -> float:
    if not ordered(values):
        return float(repr(one) == repr(other))
    return math.exp(-apart(values, one, other) / _REACH)
