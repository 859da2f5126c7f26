"""The cosine of the angle between rows, in CUDA C++ (cosine_similarity.cu) and in Numba on the CPU."""

import math

from numba import njit, prange

from assay import Axis, Tensor, kernel, op
from assay.backends.cuda import Source, cdiv, ctype
from assay.backends.njit import arrays, load, store

source = Source("cosine_similarity.cu")


@op(
    axes={"rows": Axis(typical=8192), "dim": Axis(min=1, typical=384)},
    inputs={
        "a": Tensor("rows", "dim", range=(-100, 100), specials=()),
        "b": Tensor("rows", "dim", range=(-100, 100), specials=()),
    },
    outputs={"out": Tensor("rows")},
    independent="rows",
    operations=lambda w: 6 * w.rows * w.dim,
)
def cosine_similarity(a, b):
    """a·b / (max(|a|, 1e-8)·max(|b|, 1e-8)) for every pair of rows."""
    from torch.nn.functional import cosine_similarity

    return cosine_similarity(a, b, dim=-1)


@kernel("cosine_similarity", backend="cuda", variant="honest")
def in_cuda(a, b, *, out):
    rows, dim = a.shape
    source[f"cosine_similarity<{ctype(a)}>"](cdiv(rows, 4), (32, 4), a, b, out, rows, dim)


@njit(parallel=True)
def _cosine(a, b, out):
    for row in prange(a.shape[0]):
        both, left, right = 0.0, 0.0, 0.0
        for i in range(a.shape[1]):
            v, u = float(load(a, (row, i))), float(load(b, (row, i)))
            both += v * u
            left += v * v
            right += u * u
        store(out, row, both / (max(math.sqrt(left), 1e-8) * max(math.sqrt(right), 1e-8)))


@kernel("cosine_similarity", backend="njit", variant="honest")
def in_numba(a, b, *, out):
    _cosine(*arrays(a, b, out))
