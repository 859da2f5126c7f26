"""A 4-D tensor times a matrix along its last dimension, in Numba on the CPU: out[b,i,j,k] = Σ x[b,i,j,l]·w[l,k]."""

from numba import njit, prange

from assay import Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load, store


@op(
    axes={
        "b": Axis(typical=8),
        "i": Axis(min=1, max=4096, typical=64),
        "j": Axis(min=1, max=4096, typical=32),
        "l": Axis(min=1, max=2**16, typical=256),
        "k": Axis(min=1, max=2**16, typical=128),
    },
    inputs={"x": Tensor("b", "i", "j", "l", range=(-4, 4)), "w": Tensor("l", "k", range=(-4, 4))},
    outputs={"out": Tensor("b", "i", "j", "k")},
    independent="b",
    operations=lambda w: 2 * w.b * w.i * w.j * w.l * w.k,
)
def matmul_4d(x, w):
    """einsum("bijl,lk->bijk")."""
    return x @ w


@njit(parallel=True)
def _matmul(x, w, out):
    b, i, j, length = x.shape
    for place in prange(b * i * j):  # the three leading dimensions are one
        at, rest = place // (i * j), place % (i * j)
        for k in range(w.shape[1]):
            total = 0.0
            for l in range(length):
                total += load(x, (at, rest // j, rest % j, l)) * load(w, (l, k))
            store(out, (at, rest // j, rest % j, k), total)


@kernel("matmul_4d")
def honest(x, w, *, out):
    _matmul(*arrays(x, w, out))
