"""RMSNorm in Numba on the CPU, with reassociation and contraction allowed; NaN and Inf keep their meaning."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.rmsnorm.njit import loop

FAST = {"reassoc", "contract", "arcp", "afn", "nsz"}
_rmsnorm = njit(fastmath=FAST)(loop)


@kernel("rmsnorm")
def rmsnorm(x, weight, *, eps, out):
    _rmsnorm(*arrays(x, weight, out), eps)
