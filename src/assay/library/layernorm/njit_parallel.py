"""LayerNorm in Numba on the CPU, rows over all threads."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.layernorm.njit import loop

_layernorm = njit(parallel=True)(loop)


@kernel("layernorm")
def layernorm(x, weight, bias, *, eps, out, mean=None, rstd=None):
    _layernorm(*arrays(x, weight, bias, out, mean, rstd), eps)
