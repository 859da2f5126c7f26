"""The hinge is missing: predictions that are right by a wide margin lower the loss below zero."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays, load, store


@njit
def _hinge(x, label, out):
    total = 0.0
    for i in range(x.size):
        total += 1 - load(x, i) * load(label, i)  # Wrong: at least 0.
    store(out, 0, total / x.size)


@kernel("../hinge_loss.py:hinge_loss")
def without_the_hinge(x, label, *, out):
    _hinge(*arrays(x, label, out.view(1)))
