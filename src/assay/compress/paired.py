"""Comparison of two curves by a paired bootstrap over items and seeds: both models were judged on the same items.

For each seed, an item counts +1 if only the first model is right, −1 if only the second is. Seeds, and items within
them, are drawn with replacement; the interval spans 95 % of the means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.compress.evidence import CompressEvidence
from assay.compress.items import unpacked

DRAWS = 2000
_SPAN = (2.5, 97.5)


@dataclass(frozen=True)
class Difference:
    """Difference in accuracy in percentage points, the first minus the second, with its 95 % interval."""

    points: float
    low: float
    high: float
    seeds: int

    @property
    def worse(self) -> bool:
        """True if the first is below the second on the whole interval."""
        return self.high < 0

    def __str__(self) -> str:
        return f"{self.points:+.2f} points (95 %: {self.low:+.2f} to {self.high:+.2f}; seeds: {self.seeds})"


def difference(first: Sequence[CompressEvidence], second: Sequence[CompressEvidence]) -> Difference | None:
    """Return the difference over all seeds that both have; None if there are none."""
    import numpy as np

    one, other = _by_seed(first), _by_seed(second)
    rows = np.array([one[seed] - other[seed] for seed in one if seed in other and len(one[seed]) == len(other[seed])])
    if not rows.size:
        return None
    rng = np.random.default_rng(0)
    seeds, count = rows.shape
    means = np.empty(DRAWS)
    for draw in range(DRAWS):
        drawn = rows[rng.integers(seeds, size=seeds)]
        means[draw] = np.mean([row[rng.integers(count, size=count)].mean() for row in drawn])
    low, high = np.percentile(100 * means, _SPAN)
    return Difference(100 * float(rows.mean()), float(low), float(high), seeds)


def _by_seed(evidence: Sequence[CompressEvidence]) -> Mapping[int, Any]:
    """Return for each seed an array with a 1 for each item that was classified correctly, else 0."""
    known = ((e, e.sizes) for e in evidence if e.right)
    return {e.seed: unpacked(e.right, sizes.test).numpy().astype("int8") for e, sizes in known if sizes is not None}
