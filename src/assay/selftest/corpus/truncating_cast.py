"""float32 becomes bfloat16 by dropping the lower 16 bits, not by rounding: every result is too close to
zero, by half an ulp on average."""

import numpy as np
from numba import njit

from assay import kernel
from assay.backends.njit import arrays, load, store

DETECTOR = "values"
DTYPE = "bf16"


@njit
def _axpy(x, y, out, alpha, cut):
    for i in range(x.size):
        v = np.float32(alpha * load(x, i) + load(y, i))
        if cut and v - v == 0:
            out[i] = v.view(np.uint32) >> 16
        else:
            store(out, i, v)


@kernel("axpy", variant="wrong", dtypes=("bf16",))
def wrong(x, y, *, alpha, out):
    _axpy(*arrays(x, y, out), alpha, True)


@kernel("axpy", variant="fixed", dtypes=("bf16",))
def fixed(x, y, *, alpha, out):
    _axpy(*arrays(x, y, out), alpha, False)
