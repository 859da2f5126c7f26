"""A matrix times a vector, in CUDA C++ (matvec.cu: a warp per row) and in Numba on the CPU."""

from numba import njit, prange

from assay import Axis, Tensor, kernel, op
from assay.backends.cuda import Source, cdiv, ctype
from assay.backends.njit import arrays, load, store

source = Source("matvec.cu")


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(min=1, typical=4096)},
    inputs={"a": Tensor("rows", "cols", range=(-4, 4)), "x": Tensor("cols", range=(-4, 4))},
    outputs={"out": Tensor("rows")},
    independent="rows",
    operations=lambda w: 2 * w.rows * w.cols,
)
def matvec(a, x):
    """a·x."""
    return a @ x


@kernel("matvec", backend="cuda", variant="honest")
def in_cuda(a, x, *, out):
    rows, cols = a.shape
    source[f"matvec<{ctype(a)}>"](cdiv(rows, 4), (32, 4), a, x, out, rows, cols)


@njit(parallel=True)
def _matvec(a, x, out):
    for row in prange(a.shape[0]):
        total = 0.0
        for i in range(a.shape[1]):
            total += load(a, (row, i)) * load(x, i)
        store(out, row, total)


@kernel("matvec", backend="njit", variant="honest")
def in_numba(a, x, *, out):
    _matvec(*arrays(a, x, out))
