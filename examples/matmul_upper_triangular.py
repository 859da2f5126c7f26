"""The product of two upper triangular matrices, in Numba on the CPU: half of the terms are known to be zero."""

from numba import njit, prange

from assay import Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load, store


@op(
    axes={"n": Axis(min=1, typical=512)},
    inputs={
        # A NaN below the diagonal would have to be ignored: the contract has none.
        "a": Tensor("n", "n", range=(-4, 4), specials=(), form=lambda x: x.triu()),
        "b": Tensor("n", "n", range=(-4, 4), specials=(), form=lambda x: x.triu()),
    },
    outputs={"out": Tensor("n", "n")},
    operations=lambda w: w.n**3 // 3,
)
def matmul_upper_triangular(a, b):
    """a·b, where nothing stands below the diagonals."""
    return (a @ b).triu()


@njit(parallel=True)
def _matmul(a, b, out):
    n = a.shape[0]
    for row in prange(n):
        for col in range(row):
            store(out, (row, col), 0.0)
        for col in range(row, n):
            total = 0.0
            for k in range(row, col + 1):
                total += load(a, (row, k)) * load(b, (k, col))
            store(out, (row, col), total)


@kernel("matmul_upper_triangular")
def honest(a, b, *, out):
    _matmul(*arrays(a, b, out))
