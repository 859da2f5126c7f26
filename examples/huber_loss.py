"""The Huber loss, in Numba on the CPU: quadratic near the target, linear away from it."""

from numba import njit

from assay import Attribute, Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load, store


@op(
    axes={"n": Axis(min=1, typical=1048576)},
    inputs={"x": Tensor("n", range=(-100, 100)), "target": Tensor("n", range=(-100, 100))},
    attributes={"delta": Attribute(1.0, (1.0, 0.5))},
    outputs={"out": Tensor()},
    operations=lambda w: 5 * w.n,
)
def huber_loss(x, target, *, delta):
    """The mean of ½d² where |d| ≤ delta, else delta·(|d| − ½delta)."""
    from torch.nn.functional import huber_loss

    return huber_loss(x, target, delta=delta)


@njit
def _huber(x, target, out, delta):
    total = 0.0
    for i in range(x.size):
        d = abs(load(x, i) - load(target, i))
        total += delta * (d - 0.5 * delta) if d > delta else 0.5 * d * d
    store(out, 0, total / x.size)


@kernel("huber_loss")
def honest(x, target, *, delta, out):
    _huber(*arrays(x, target, out.view(1)), delta)
