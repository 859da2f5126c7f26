"""One matrix product per batch entry, in Triton: the batch is the third dimension of the grid."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={
        "batch": Axis(max=1024, typical=128),
        "m": Axis(min=1, typical=128),
        "k": Axis(min=1, typical=256),
        "n": Axis(min=1, typical=64),
    },
    inputs={"a": Tensor("batch", "m", "k", range=(-4, 4)), "b": Tensor("batch", "k", "n", range=(-4, 4))},
    outputs={"out": Tensor("batch", "m", "n")},
    independent="batch",
    operations=lambda w: 2 * w.batch * w.m * w.k * w.n,
)
def matmul_batched(a, b):
    """out[i] = a[i]·b[i]."""
    return a @ b


@triton.jit
def _matmul(a, b, c, m, k, n, BLOCK: tl.constexpr):
    batch = tl.program_id(2).to(tl.int64)
    a += batch * m * k
    b += batch * k * n
    c += batch * m * n
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    col = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK):
        i = start + tl.arange(0, BLOCK)
        left = tl.load(a + row[:, None] * k + i[None, :], mask=(row[:, None] < m) & (i[None, :] < k), other=0.0)
        right = tl.load(b + i[:, None] * n + col[None, :], mask=(i[:, None] < k) & (col[None, :] < n), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    inside = (row[:, None] < m) & (col[None, :] < n)
    tl.store(c + row[:, None] * n + col[None, :], total.to(c.dtype.element_ty), mask=inside)


@kernel("matmul_batched")
def honest(a, b, *, out, BLOCK=32):
    (batch, m, k), n = a.shape, b.shape[2]
    _matmul[(triton.cdiv(m, BLOCK), triton.cdiv(n, BLOCK), batch)](a, b, out, m, k, n, BLOCK)
