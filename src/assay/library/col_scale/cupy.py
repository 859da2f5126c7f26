"""Column scaling in CuPy: an ElementwiseKernel, which broadcasts the factors."""

import cupy

from assay import kernel
from assay.backends.cupy import NUMBERS, array

_col_scale = cupy.ElementwiseKernel(
    "T x, T scale", "T y", "y = rounded<T>(widen(x) * widen(scale))", "col_scale", preamble=NUMBERS
)


@kernel("col_scale")
def col_scale(x, scale, *, out):
    _col_scale(array(x), array(scale), array(out))
