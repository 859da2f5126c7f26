"""The sum is formed in 16 bits: it has wrapped around before it is compared with the ends of the range."""

from numba import int16, njit, prange

from assay import kernel
from assay.backends.njit import arrays


@njit(parallel=True)
def _add(x, y, out):
    for i in prange(x.size):
        total = int16(x[i] + y[i])  # Wrong: in 32 bits.
        out[i] = min(max(total, -32768), 32767)


@kernel("../int16_saturating_add.py:int16_saturating_add")
def wraps_around(x, y, *, out):
    _add(*arrays(x, y, out))
