"""Chunks' variances are joined by adding their squares; that their means differ is left out, and on
random data they hardly do."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays

DETECTOR = "values"


@njit
def _mean_var(x, out, var, difference):
    rows, cols = x.shape
    for r in range(rows):
        count, mean, squares = 0, 0.0, 0.0
        for start in range(0, cols, 1024):
            n = min(1024, cols - start)
            mu = s = 0.0
            for c in range(start, start + n):
                mu += x[r, c] / n
            for c in range(start, start + n):
                s += (x[r, c] - mu) ** 2
            delta = mu - mean
            squares += s
            if difference:
                squares += delta * delta * count * n / (count + n)
            mean += delta * n / (count + n)
            count += n
        out[r], var[r] = mean, squares / cols


@kernel("mean_var", variant="wrong")
def wrong(x, *, out, var):
    _mean_var(*arrays(x, out, var), False)


@kernel("mean_var", variant="fixed")
def fixed(x, *, out, var):
    _mean_var(*arrays(x, out, var), True)
