"""Euclidean distance in CuPy: a ReductionKernel along the rows."""

import cupy

from assay import kernel
from assay.backends.cupy import NUMBERS, array

_distance = cupy.ReductionKernel(
    "T x, T y",
    "T out",
    "squared(widen(x) - widen(y))",
    "a + b",
    "out = rounded<T>(sqrtf(a))",
    "0",
    "euclidean_distance",
    reduce_type="float",
    preamble=NUMBERS + "__device__ float squared(float v) { return v * v; }",
)


@kernel("euclidean_distance")
def euclidean_distance(x, y, *, out):
    _distance(array(x), array(y), array(out), axis=1)
