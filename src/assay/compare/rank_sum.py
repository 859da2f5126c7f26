"""The rank-sum test, exact where nothing ties, and the shift it allows: no distribution is assumed."""

import math
from collections.abc import Sequence
from functools import cache

_EXACT = 400
"""Products of the two counts up to which the distribution is counted out."""


@cache
def _ways(m: int, n: int) -> tuple[int, ...]:
    """How many orders of m and n values have U = 0, 1, … m·n: the coefficients of a Gaussian binomial."""
    counts = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for u in range(m * n, n + i - 1, -1):
            counts[u] -= counts[u - n - i]
        for u in range(i, m * n + 1):
            counts[u] += counts[u - i]
    return tuple(counts)


def p_value(a: Sequence[float], b: Sequence[float]) -> float:
    """Two-sided: how likely orders as uneven as these are, if both come from one distribution. Ties count half."""
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
    """Hodges–Lehmann: the median of all differences b − a, and the interval of those the test would not reject. None
    where so few values cannot give an interval of that level."""
    differences = sorted(y - x for x in a for y in b)
    m, n, count = len(a), len(b), len(differences)
    middle = (differences[(count - 1) // 2] + differences[count // 2]) / 2
    if m * n <= _EXACT:
        ways, total, out, tail = _ways(m, n), math.comb(m + n, m), 0, 0
        while out < count // 2 and 2 * (tail + ways[out]) / total <= 1 - level:
            tail += ways[out]
            out += 1
    else:
        z = _normal_quantile((1 + level) / 2)
        out = max(0, math.floor(m * n / 2 - z * math.sqrt(m * n * (m + n + 1) / 12)))
    if not out:
        return None
    return middle, differences[out - 1], differences[-out]


def _normal_quantile(p: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)
