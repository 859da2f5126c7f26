"""The hinge loss of predictions against labels of ±1, in Numba on the CPU: a form makes the labels."""

from numba import njit

from assay import Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load, store


@op(
    axes={"n": Axis(min=1, typical=1048576)},
    inputs={
        "x": Tensor("n", range=(-100, 100)),
        "label": Tensor("n", specials=(), form=lambda drawn: (drawn >= 0) * 2.0 - 1.0),
    },
    outputs={"out": Tensor()},
    operations=lambda w: 3 * w.n,
)
def hinge_loss(x, label):
    """The mean of max(0, 1 − x·label)."""
    return (1 - x * label).clamp(min=0).mean()


@njit
def _hinge(x, label, out):
    total = 0.0
    for i in range(x.size):
        short = 1 - load(x, i) * load(label, i)
        if not short <= 0:  # NaN counts
            total += short
    store(out, 0, total / x.size)


@kernel("hinge_loss")
def honest(x, label, *, out):
    _hinge(*arrays(x, label, out.view(1)))
