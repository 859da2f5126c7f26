"""GELU in Numba on the CPU, one thread."""

import math

from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


def erf_loop(x, y):
    for i in prange(x.size):
        v = load(x, i)
        store(y, i, 0.5 * v * (1.0 + math.erf(v * 0.7071067811865476)))


def tanh_loop(x, y):
    for i in prange(x.size):
        v = load(x, i)
        store(y, i, 0.5 * v * (1.0 + math.tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))))


_gelu, _gelu_tanh = njit(erf_loop), njit(tanh_loop)


@kernel("gelu")
def gelu(x, *, out):
    _gelu(*arrays(x, out))


@kernel("gelu_tanh")
def gelu_tanh(x, *, out):
    _gelu_tanh(*arrays(x, out))
