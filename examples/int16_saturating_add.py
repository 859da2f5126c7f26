"""The sum of 16-bit samples, held at the ends of their range, in Numba on the CPU."""

from numba import int32, njit, prange

from assay import Axis, Tensor, kernel, op
from assay.backends.njit import arrays


@op(
    axes={"n": Axis(typical=4194304)},
    inputs={"x": Tensor("n", range=(-32768, 32767)), "y": Tensor("n", range=(-32768, 32767))},
    outputs={"out": Tensor("n")},
    dtypes=("int16",),
    independent="n",
    operations=lambda w: w.n,
)
def int16_saturating_add(x, y):
    """x + y, at least −32768 and at most 32767."""
    return (x.long() + y.long()).clamp(-32768, 32767)


@njit(parallel=True)
def _add(x, y, out):
    for i in prange(x.size):
        out[i] = min(max(int32(x[i]) + int32(y[i]), -32768), 32767)


@kernel("int16_saturating_add")
def honest(x, y, *, out):
    _add(*arrays(x, y, out))
