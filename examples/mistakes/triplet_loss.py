"""Squared distances: the order of the two is the same, the margin is not."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays, load, store


@njit
def _triplet(anchor, near, far, out, margin):
    total = 0.0
    for row in range(anchor.shape[0]):
        to_near, to_far = 0.0, 0.0
        for i in range(anchor.shape[1]):
            a = load(anchor, (row, i))
            to_near += (a - load(near, (row, i))) ** 2
            to_far += (a - load(far, (row, i))) ** 2
        total += max(0.0, to_near - to_far + margin)  # Wrong: of the roots.
    store(out, 0, total / anchor.shape[0])


@kernel("../triplet_loss.py:triplet_loss")
def squared_distances(anchor, near, far, *, margin, out):
    _triplet(*arrays(anchor, near, far, out.view(1)), margin)
