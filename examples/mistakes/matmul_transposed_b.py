"""The accumulator has the output's dtype: in bf16 and fp16 each tile's sum is rounded before the next is added."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _matmul(a, b, c, m, k, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    col = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), c.dtype.element_ty)  # Wrong: it should be float32.
    for start in range(0, k, BLOCK):
        i = start + tl.arange(0, BLOCK)
        left = tl.load(a + row[:, None] * k + i[None, :], mask=(row[:, None] < m) & (i[None, :] < k), other=0.0)
        right = tl.load(b + col[:, None] * k + i[None, :], mask=(col[:, None] < n) & (i[None, :] < k), other=0.0)
        total += tl.dot(left, tl.trans(right), input_precision="ieee").to(c.dtype.element_ty)
    inside = (row[:, None] < m) & (col[None, :] < n)
    tl.store(c + row[:, None] * n + col[None, :], total, mask=inside)


@kernel("../matmul_transposed_b.py:matmul_transposed_b", dtypes=["bf16", "fp16"])
def narrow_accumulator(a, b, *, out, BLOCK=16):
    (m, k), n = a.shape, b.shape[0]
    _matmul[(triton.cdiv(m, BLOCK), triton.cdiv(n, BLOCK))](a, b, out, m, k, n, BLOCK)
