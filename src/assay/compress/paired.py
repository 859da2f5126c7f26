"""Is one curve above another? A paired bootstrap over items and seeds: both models were judged on the same items.

For each seed, an item counts +1 where only the first model is right, −1 where only the second is. Seeds are drawn with
replacement, and items within them; the interval spans 95 % of the means."""

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
    """In points of accuracy, the first less the second."""

    points: float
    low: float
    high: float
    seeds: int

    @property
    def worse(self) -> bool:
        """The first is below the second, whatever items and seeds would have been drawn."""
        return self.high < 0

    def __str__(self) -> str:
        return f"{self.points:+.2f} points (95 %: {self.low:+.2f} to {self.high:+.2f}; seeds: {self.seeds})"


def difference(first: Sequence[CompressEvidence], second: Sequence[CompressEvidence]) -> Difference | None:
    """Of all seeds that both have; None where there is none."""
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
    """Zeros and ones, one for each item."""
    known = ((e, e.sizes) for e in evidence if e.right)
    return {e.seed: unpacked(e.right, sizes.test).numpy().astype("int8") for e, sizes in known if sizes is not None}
