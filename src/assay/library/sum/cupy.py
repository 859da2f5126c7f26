"""The sum in CuPy: a ReductionKernel, in two passes, the partial sums in CuPy's own memory pool."""

import cupy

from assay import kernel
from assay.backends.cupy import NUMBERS, array

_sum = cupy.ReductionKernel(
    "T x", "T y", "widen(x)", "a + b", "y = rounded<T>(a)", "0", "sum", reduce_type="float", preamble=NUMBERS
)


@kernel("sum")
def sum(x, *, out):
    _sum(array(x), array(out))
