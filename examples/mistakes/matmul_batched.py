"""B's batch stride is taken from A: right only where m·k = k·n, which every square test has."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _matmul(a, b, c, m, k, n, BLOCK: tl.constexpr):
    batch = tl.program_id(2).to(tl.int64)
    a += batch * m * k
    b += batch * m * k  # Wrong: an entry of B has k·n elements.
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


@kernel("../matmul_batched.py:matmul_batched")
def strides_of_a(a, b, *, out, BLOCK=32):
    (batch, m, k), n = a.shape, b.shape[2]
    _matmul[(triton.cdiv(m, BLOCK), triton.cdiv(n, BLOCK), batch)](a, b, out, m, k, n, BLOCK)
