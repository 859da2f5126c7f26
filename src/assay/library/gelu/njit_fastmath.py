"""GELU in Numba on the CPU, with reassociation and contraction allowed; NaN and Inf keep their meaning."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.gelu.njit import erf_loop, tanh_loop

FAST = {"reassoc", "contract", "arcp", "afn", "nsz"}
_gelu, _gelu_tanh = njit(fastmath=FAST)(erf_loop), njit(fastmath=FAST)(tanh_loop)


@kernel("gelu")
def gelu(x, *, out):
    _gelu(*arrays(x, out))


@kernel("gelu_tanh")
def gelu_tanh(x, *, out):
    _gelu_tanh(*arrays(x, out))
