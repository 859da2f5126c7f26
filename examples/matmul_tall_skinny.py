"""A tall matrix times a narrow one, in Numba on the CPU: the narrow one stays in cache, rows are independent."""

from numba import njit, prange

from assay import Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load, store


@op(
    axes={
        "m": Axis(typical=16384),
        "k": Axis(min=1, max=2**20, typical=64),
        "n": Axis(min=1, max=2**16, typical=32),
    },
    inputs={"a": Tensor("m", "k", range=(-4, 4)), "b": Tensor("k", "n", range=(-4, 4))},
    outputs={"out": Tensor("m", "n")},
    independent="m",
    operations=lambda w: 2 * w.m * w.k * w.n,
)
def matmul_tall_skinny(a, b):
    """The product of an m×k and a k×n matrix, m being much the longest."""
    return a @ b


@njit(parallel=True)
def _matmul(a, b, out):
    for row in prange(a.shape[0]):
        for col in range(b.shape[1]):
            total = 0.0  # float64: a long sum would lose bits in float32
            for k in range(a.shape[1]):
                total += load(a, (row, k)) * load(b, (k, col))
            store(out, (row, col), total)


@kernel("matmul_tall_skinny")
def honest(a, b, *, out):
    _matmul(*arrays(a, b, out))
