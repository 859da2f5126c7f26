"""SiLU in CuPy: an ElementwiseKernel."""

import cupy

from assay import kernel
from assay.backends.cupy import NUMBERS, array

_silu = cupy.ElementwiseKernel(
    "T x", "T y", "const float v = widen(x); y = rounded<T>(v / (1.0f + expf(-v)));", "silu", preamble=NUMBERS
)


@kernel("silu")
def silu(x, *, out):
    _silu(array(x), array(out))
