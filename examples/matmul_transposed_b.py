"""A·Bᵀ, the product inside a linear layer, in Triton: B is read as it lies and turned in registers."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"m": Axis(typical=512), "k": Axis(min=1, typical=768), "n": Axis(min=1, typical=768)},
    inputs={"a": Tensor("m", "k", range=(-4, 4)), "b": Tensor("n", "k", range=(-4, 4))},
    outputs={"out": Tensor("m", "n")},
    independent="m",
    operations=lambda w: 2 * w.m * w.k * w.n,
)
def matmul_transposed_b(a, b):
    """a·bᵀ."""
    return a @ b.mT


@triton.jit
def _matmul(a, b, c, m, k, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    col = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK):
        i = start + tl.arange(0, BLOCK)
        left = tl.load(a + row[:, None] * k + i[None, :], mask=(row[:, None] < m) & (i[None, :] < k), other=0.0)
        right = tl.load(b + col[:, None] * k + i[None, :], mask=(col[:, None] < n) & (i[None, :] < k), other=0.0)
        total = tl.dot(left, tl.trans(right), total, input_precision="ieee")
    inside = (row[:, None] < m) & (col[None, :] < n)
    tl.store(c + row[:, None] * n + col[None, :], total.to(c.dtype.element_ty), mask=inside)


@kernel("matmul_transposed_b")
def honest(a, b, *, out, BLOCK=32):
    (m, k), n = a.shape, b.shape[0]
    _matmul[(triton.cdiv(m, BLOCK), triton.cdiv(n, BLOCK))](a, b, out, m, k, n, BLOCK)
