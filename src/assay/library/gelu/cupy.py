"""GELU in CuPy: an ElementwiseKernel."""

import cupy

from assay import kernel
from assay.backends.cupy import NUMBERS, array

_gelu = cupy.ElementwiseKernel(
    "T x",
    "T y",
    "const float v = widen(x); y = rounded<T>(0.5f * v * (1.0f + erff(v * 0.7071067811865476f)));",
    "gelu",
    preamble=NUMBERS,
)
_gelu_tanh = cupy.ElementwiseKernel(
    "T x",
    "T y",
    """
    const float v = widen(x);
    y = rounded<T>(0.5f * v * (1.0f + tanhf(0.7978845608028654f * (v + 0.044715f * v * v * v))));
    """,
    "gelu_tanh",
    preamble=NUMBERS,
)


@kernel("gelu")
def gelu(x, *, out):
    _gelu(array(x), array(out))


@kernel("gelu_tanh")
def gelu_tanh(x, *, out):
    _gelu_tanh(array(x), array(out))
