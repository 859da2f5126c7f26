"""Softmax in Numba on the CPU, with reassociation and contraction allowed; NaN and Inf keep their meaning."""

from numba import njit

from assay import kernel
from assay.backends.njit import arrays
from assay.library.softmax.njit import loop

FAST = {"reassoc", "contract", "arcp", "afn", "nsz"}
_softmax = njit(fastmath=FAST)(loop)


@kernel("softmax")
def softmax(x, *, out):
    _softmax(*arrays(x, out))
