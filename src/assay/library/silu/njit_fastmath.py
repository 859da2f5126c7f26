"""SiLU in Numba on the CPU, with reassociation and contraction allowed; NaN and Inf keep their meaning."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.silu.njit import loop

FAST = {"reassoc", "contract", "arcp", "afn", "nsz"}
_silu = njit(fastmath=FAST)(loop)


@kernel("silu")
def silu(x, *, out):
    _silu(*arrays(x, out))
