"""GELU in Numba on the CPU."""

import math

from numba import prange

from assay import kernel
from assay.backends.njit import arrays, jitted, load, store

VARIANTS = {"parallel": {"parallel": True}, "fastmath": {"fastmath": True}}
TUNE = {
    "parallel": [False, True],
    "threads": [0, 1, 2, 4, 8, 16, 32, 64],
    "chunk": [0, 1024, 4096, 16384, 65536, 262144],
}
FITS = "threads < cores if parallel else threads == 0 and chunk == 0"


def erf_loop(x, y):
    for i in prange(x.size):
        v = load(x, i)
        store(y, i, 0.5 * v * (1.0 + math.erf(v * 0.7071067811865476)))


def tanh_loop(x, y):
    for i in prange(x.size):
        v = load(x, i)
        store(y, i, 0.5 * v * (1.0 + math.tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))))


@kernel("gelu", variants=VARIANTS, tune=TUNE, fits=FITS)
def gelu(x, *, out, parallel=False, fastmath=False, threads=0, chunk=0):
    jitted(erf_loop, parallel, fastmath, threads, chunk)(*arrays(x, out))


@kernel("gelu_tanh", variants=VARIANTS, tune=TUNE, fits=FITS)
def gelu_tanh(x, *, out, parallel=False, fastmath=False, threads=0, chunk=0):
    jitted(tanh_loop, parallel, fastmath, threads, chunk)(*arrays(x, out))
