"""1 / (1 + e^−x), in Numba on the CPU, written so that the exponential never overflows."""

import math

from numba import njit, prange

from assay import Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load, store


@op(
    axes={"n": Axis(typical=4194304)},
    inputs={"x": Tensor("n")},
    outputs={"out": Tensor("n")},
    independent="n",
    operations=lambda w: 4 * w.n,
)
def sigmoid(x):
    """1 / (1 + e^−x)."""
    return x.sigmoid()


@njit(parallel=True)
def _sigmoid(x, out):
    for i in prange(x.size):
        v = load(x, i)
        if v < 0:
            e = math.exp(v)
            store(out, i, e / (1 + e))
        else:
            store(out, i, 1 / (1 + math.exp(-v)))


@kernel("sigmoid")
def honest(x, *, out):
    _sigmoid(*arrays(x, out))
