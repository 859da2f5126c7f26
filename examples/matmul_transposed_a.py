"""Aᵀ·B, the product inside a weight's gradient, in CUDA C++ (matmul_transposed_a.cu) and in Numba on the CPU."""

from numba import njit, prange

from assay import Axis, Tensor, kernel, op
from assay.backends.cuda import Source, cdiv, ctype
from assay.backends.njit import arrays, load, store

source = Source("matmul_transposed_a.cu")


@op(
    axes={
        "m": Axis(min=1, max=2**19, typical=768),
        "k": Axis(min=1, typical=512),
        "n": Axis(min=1, max=2**19, typical=768),
    },
    inputs={"a": Tensor("k", "m", range=(-4, 4)), "b": Tensor("k", "n", range=(-4, 4))},
    outputs={"out": Tensor("m", "n")},
    operations=lambda w: 2 * w.m * w.k * w.n,
)
def matmul_transposed_a(a, b):
    """aᵀ·b."""
    return a.mT @ b


@kernel("matmul_transposed_a", backend="cuda", variant="honest")
def in_cuda(a, b, *, out):
    (k, m), n = a.shape, b.shape[1]
    source[f"matmul_transposed_a<{ctype(a)}>"]((cdiv(n, 16), cdiv(m, 16)), (16, 16), a, b, out, m, n, k)


@njit(parallel=True)
def _matmul(a, b, out):
    for row in prange(a.shape[1]):
        for col in range(b.shape[1]):
            total = 0.0
            for k in range(a.shape[0]):
                total += load(a, (k, row)) * load(b, (k, col))
            store(out, (row, col), total)


@kernel("matmul_transposed_a", backend="njit", variant="honest")
def in_numba(a, b, *, out):
    _matmul(*arrays(a, b, out))
