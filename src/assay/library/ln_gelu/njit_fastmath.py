"""GELU of LayerNorm in Numba on the CPU, with reassociation and contraction allowed; NaN and Inf stay."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.ln_gelu.njit import loop

FAST = {"reassoc", "contract", "arcp", "afn", "nsz"}
_ln_gelu = njit(fastmath=FAST)(loop)


@kernel("ln_gelu")
def ln_gelu(x, weight, bias, *, eps, out):
    _ln_gelu(*arrays(x, weight, bias, out), eps)
