"""RMSNorm in Numba on the CPU, rows over all threads."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.rmsnorm.njit import loop

_rmsnorm = njit(parallel=True)(loop)


@kernel("rmsnorm")
def rmsnorm(x, weight, *, eps, out):
    _rmsnorm(*arrays(x, weight, out), eps)
