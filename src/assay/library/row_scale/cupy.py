"""Row scaling in CuPy: an ElementwiseKernel, which broadcasts the factors."""

import cupy

from assay import kernel
from assay.backends.cupy import NUMBERS, array

_row_scale = cupy.ElementwiseKernel(
    "T x, T scale", "T y", "y = rounded<T>(widen(x) * widen(scale))", "row_scale", preamble=NUMBERS
)


@kernel("row_scale")
def row_scale(x, scale, *, out):
    _row_scale(array(x), array(scale[:, None]), array(out))
