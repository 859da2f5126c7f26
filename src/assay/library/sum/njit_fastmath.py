"""The sum in Numba on the CPU, reassociation allowed, which vectorises it; NaN and Inf keep their meaning."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.sum.njit import loop

FAST = {"reassoc", "contract", "arcp", "afn", "nsz"}
_sum = njit(fastmath=FAST)(loop)


@kernel("sum")
def sum(x, *, out):
    _sum(*arrays(x, out.view(1)))
