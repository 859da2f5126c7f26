"""Each row divided by its Euclidean norm, in CUDA C++ (l2_norm.cu: a block per row) and in Numba on the CPU."""

import math

from numba import njit, prange

from assay import Attribute, Axis, Tensor, kernel, op
from assay.backends.cuda import Source, ctype
from assay.backends.njit import arrays, load, store

source = Source("l2_norm.cu")


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(min=1, typical=1024)},
    inputs={"x": Tensor("rows", "cols", range=(-1000, 1000))},
    attributes={"eps": Attribute(1e-12, (1e-12, 1e-6))},
    outputs={"out": Tensor("rows", "cols")},
    independent="rows",
    operations=lambda w: 3 * w.rows * w.cols,
)
def l2_norm(x, *, eps):
    """x / max(√Σx², eps) along each row."""
    from torch.nn.functional import normalize

    return normalize(x, dim=-1, eps=eps)


@kernel("l2_norm", backend="cuda", variant="honest")
def in_cuda(x, *, eps, out):
    rows, cols = x.shape
    source[f"l2_norm<{ctype(x)}>"](rows, 256, x, out, cols, eps)


@njit(parallel=True)
def _norm(x, out, eps):
    for row in prange(x.shape[0]):
        total = 0.0
        for i in range(x.shape[1]):
            v = float(load(x, (row, i)))
            total += v * v
        norm = math.sqrt(total)
        norm = eps if norm < eps else norm  # a comparison passes NaN on
        for i in range(x.shape[1]):
            store(out, (row, i), load(x, (row, i)) / norm)


@kernel("l2_norm", backend="njit", variant="honest")
def in_numba(x, *, eps, out):
    _norm(*arrays(x, out), eps)
