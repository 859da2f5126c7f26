"""LayerNorm in Numba on the CPU, with reassociation and contraction allowed; NaN and Inf stay."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.layernorm.njit import loop

FAST = {"reassoc", "contract", "arcp", "afn", "nsz"}
_layernorm = njit(fastmath=FAST)(loop)


@kernel("layernorm")
def layernorm(x, weight, bias, *, eps, out, mean=None, rstd=None):
    _layernorm(*arrays(x, weight, bias, out, mean, rstd), eps)
