"""GELU in Numba on the CPU."""

import math

from numba import prange

from assay import kernel
from assay.backends.njit import arrays, jitted, load, store

VARIANTS = {"parallel": {"parallel": True}, "fastmath": {"fastmath": True}}


def erf_loop(x, y):
    for i in prange(x.size):
        v = load(x, i)
        store(y, i, 0.5 * v * (1.0 + math.erf(v * 0.7071067811865476)))


def tanh_loop(x, y):
    for i in prange(x.size):
        v = load(x, i)
        store(y, i, 0.5 * v * (1.0 + math.tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))))


@kernel("gelu", variants=VARIANTS)
def gelu(x, *, out, parallel=False, fastmath=False):
    jitted(erf_loop, parallel, fastmath)(*arrays(x, out))


@kernel("gelu_tanh", variants=VARIANTS)
def gelu_tanh(x, *, out, parallel=False, fastmath=False):
    jitted(tanh_loop, parallel, fastmath)(*arrays(x, out))
