"""Rounds to fp8 e4m3 (4 bits of exponent, 3 of fraction, no infinity), bit by bit, in Numba on the CPU."""

import math

import numpy as np
import torch
from numba import njit, prange

from assay import NAN, Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load


@op(
    axes={"n": Axis(typical=4194304)},
    inputs={"x": Tensor("n", range=(-448, 448), specials=(NAN,))},
    outputs={"out": Tensor("n", dtype="fp8_e4m3")},
    independent="n",
    operations=lambda w: w.n,
)
def fp8_cast(x):
    """x itself: that the result is rounded once, to nearest, ties to even, is what an output's dtype says."""
    return x


@njit(parallel=True)
def _cast(x, out):
    for i in prange(x.size):
        v = float(load(x, i))
        size, sign = abs(v), 128 if math.copysign(1.0, v) < 0 else 0
        if v != v:
            out[i] = 127
            continue
        exponent = math.frexp(size)[1] - 1 if size >= 2.0**-6 else -6  # below, the spacing stays the same
        steps = int(np.rint(math.ldexp(size, 3 - exponent)))  # rint rounds ties to even
        # A normal number has 8 … 15 steps, the first 8 of which are not stored; 16 carries into the exponent.
        out[i] = sign + (steps if exponent == -6 else (exponent + 7) * 8 + steps - 8)


@kernel("fp8_cast")
def honest(x, *, out):
    _cast(*arrays(x, out.view(torch.uint8)))
