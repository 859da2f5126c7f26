"""GELU in Numba on the CPU, all threads."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.gelu.njit import erf_loop, tanh_loop

_gelu, _gelu_tanh = njit(parallel=True)(erf_loop), njit(parallel=True)(tanh_loop)


@kernel("gelu")
def gelu(x, *, out):
    _gelu(*arrays(x, out))


@kernel("gelu_tanh")
def gelu_tanh(x, *, out):
    _gelu_tanh(*arrays(x, out))
