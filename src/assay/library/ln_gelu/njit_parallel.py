"""GELU of LayerNorm in Numba on the CPU, rows over all threads."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.ln_gelu.njit import loop

_ln_gelu = njit(parallel=True)(loop)


@kernel("ln_gelu")
def ln_gelu(x, weight, bias, *, eps, out):
    _ln_gelu(*arrays(x, weight, bias, out), eps)
