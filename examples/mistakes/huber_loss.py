"""The linear branch lacks its ½: the two branches no longer meet at delta."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays, load, store


@njit
def _huber(x, target, out, delta):
    total = 0.0
    for i in range(x.size):
        d = abs(load(x, i) - load(target, i))
        total += delta * (d - delta) if d > delta else 0.5 * d * d  # Wrong: d − ½delta.
    store(out, 0, total / x.size)


@kernel("../huber_loss.py:huber_loss")
def branches_do_not_meet(x, target, *, delta, out):
    _huber(*arrays(x, target, out.view(1)), delta)
