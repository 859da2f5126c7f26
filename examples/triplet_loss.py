"""The triplet loss of embeddings, in Numba on the CPU: an anchor, one that should be near, one that should be far."""

import math

from numba import njit

from assay import Attribute, Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load, store


@op(
    axes={"rows": Axis(min=1, typical=4096), "dim": Axis(min=1, typical=256)},
    inputs={
        "anchor": Tensor("rows", "dim", range=(-10, 10), specials=()),
        "near": Tensor("rows", "dim", range=(-10, 10), specials=()),
        "far": Tensor("rows", "dim", range=(-10, 10), specials=()),
    },
    attributes={"margin": Attribute(1.0, (1.0, 0.2))},
    outputs={"out": Tensor()},
    operations=lambda w: 6 * w.rows * w.dim,
)
def triplet_loss(anchor, near, far, *, margin):
    """The mean of max(0, |anchor − near| − |anchor − far| + margin), distances being Euclidean."""
    to_near = (anchor - near).square().sum(-1).sqrt()
    to_far = (anchor - far).square().sum(-1).sqrt()
    return (to_near - to_far + margin).clamp(min=0).mean()


@njit
def _triplet(anchor, near, far, out, margin):
    total = 0.0
    for row in range(anchor.shape[0]):
        to_near, to_far = 0.0, 0.0
        for i in range(anchor.shape[1]):
            a = load(anchor, (row, i))
            to_near += (a - load(near, (row, i))) ** 2
            to_far += (a - load(far, (row, i))) ** 2
        total += max(0.0, math.sqrt(to_near) - math.sqrt(to_far) + margin)
    store(out, 0, total / anchor.shape[0])


@kernel("triplet_loss")
def honest(anchor, near, far, *, margin, out):
    _triplet(*arrays(anchor, near, far, out.view(1)), margin)
