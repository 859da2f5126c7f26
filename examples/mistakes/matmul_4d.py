"""The flat position is taken apart with the wrong divisor: i instead of j, right only where the two are equal."""

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


@njit(parallel=True)
def _matmul(x, w, out):
    b, i, j, length = x.shape
    for place in prange(b * i * j):
        at, rest = place // (i * j), place % (i * j)
        for k in range(w.shape[1]):
            total = 0.0
            for l in range(length):
                # Wrong: a step of the second dimension is j places, not i.
                total += load(x, (at, min(rest // i, i - 1), rest % j, l)) * load(w, (l, k))
            store(out, (at, rest // j, rest % j, k), total)


@kernel("../matmul_4d.py:matmul_4d")
def wrong_divisor(x, w, *, out):
    _matmul(*arrays(x, w, out))
