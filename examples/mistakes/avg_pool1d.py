"""Windows at the border are divided by their full length, as if the padding counted."""

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


@njit(parallel=True)
def _pool(x, out, window, stride, padding):
    for row in prange(out.shape[0]):
        for o in range(out.shape[1]):
            first = max(0, o * stride - padding)
            last = min(x.shape[1], o * stride - padding + window)
            total = 0.0
            for i in range(first, last):
                total += load(x, (row, i))
            store(out, (row, o), total / window)  # Wrong: by last − first.


@kernel("../avg_pool1d.py:avg_pool1d")
def counts_the_padding(x, *, window, stride, padding, out):
    _pool(*arrays(x, out), window, stride, padding)
