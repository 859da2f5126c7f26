"""axpy in CuPy: an ElementwiseKernel."""

import cupy

from assay import kernel
from assay.backends.cupy import NUMBERS, array

_axpy = cupy.ElementwiseKernel(
    "float32 alpha, T x, T y", "T z", "z = rounded<T>(alpha * widen(x) + widen(y))", "axpy", preamble=NUMBERS
)


@kernel("axpy")
def axpy(x, y, *, alpha, out):
    result = array(out)
    # In place, y and out must be one object: CuPy copies an input that shares another array's memory.
    _axpy(alpha, array(x), result if y.data_ptr() == out.data_ptr() else array(y), result)
