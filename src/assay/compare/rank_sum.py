"""The rank-sum test, exact where no values are equal, and the interval of the shift: no distribution is assumed."""

import math
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist

_EXACT = 400
"""The exact distribution is computed up to this product of the two counts."""


@cache
def _ways(m: int, n: int) -> tuple[int, ...]:
    """Return how many orders of m and n values have U = 0, 1, … m·n: the coefficients of a Gaussian binomial."""
    counts = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for u in range(m * n, n + i - 1, -1):
            counts[u] -= counts[u - n - i]
        for u in range(i, m * n + 1):
            counts[u] += counts[u - i]
    return tuple(counts)


def p_value(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the probability of orders at least as uneven as this one if both sets come from one distribution.
    Two-sided; equal values count half."""
    m, n = len(a), len(b)
    if not m or not n:
        return 1.0
    u = sum((y > x) + 0.5 * (y == x) for x in a for y in b)
    extreme = min(u, m * n - u)
    if m * n <= _EXACT:
        ways = _ways(m, n)
        return min(1.0, 2 * sum(ways[: math.floor(extreme) + 1]) / math.comb(m + n, m))
    z = (abs(u - m * n / 2) - 0.5) / math.sqrt(m * n * (m + n + 1) / 12)
    return min(1.0, math.erfc(max(0.0, z) / math.sqrt(2)))


def shift(a: Sequence[float], b: Sequence[float], level: float) -> tuple[float, float, float] | None:
    """Return the median of all differences b − a (Hodges–Lehmann), and the ends of the interval that the test would not
    reject. None if there are too few values for an interval of that level."""
    differences = sorted(y - x for x in a for y in b)
    m, n, count = len(a), len(b), len(differences)
    middle = (differences[(count - 1) // 2] + differences[count // 2]) / 2
    if m * n <= _EXACT:
        ways, total, out, tail = _ways(m, n), math.comb(m + n, m), 0, 0
        while out < count // 2 and 2 * (tail + ways[out]) / total <= 1 - level:
            tail += ways[out]
            out += 1
    else:
        z = NormalDist().inv_cdf((1 + level) / 2)
        out = max(0, math.floor(m * n / 2 - z * math.sqrt(m * n * (m + n + 1) / 12)))
    return (middle, differences[out - 1], differences[-out]) if out else None
