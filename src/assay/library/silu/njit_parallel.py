"""SiLU in Numba on the CPU, all threads."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.silu.njit import loop

_silu = njit(parallel=True)(loop)


@kernel("silu")
def silu(x, *, out):
    _silu(*arrays(x, out))
