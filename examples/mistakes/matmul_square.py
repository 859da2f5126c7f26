"""The last tile along k is not masked: where n is no multiple of the tile, A's loads run into the next row."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _matmul(a, b, c, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    col = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, n, BLOCK):
        k = start + tl.arange(0, BLOCK)
        # Wrong: the rows are masked, k is not.
        left = tl.load(a + row[:, None] * n + k[None, :], mask=row[:, None] < n, other=0.0)
        right = tl.load(b + k[:, None] * n + col[None, :], mask=col[None, :] < n, other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    inside = (row[:, None] < n) & (col[None, :] < n)
    tl.store(c + row[:, None] * n + col[None, :], total.to(c.dtype.element_ty), mask=inside)


@kernel("../matmul_square.py:matmul_square")
def k_not_masked(a, b, *, out, BLOCK=32):
    n = a.shape[0]
    tiles = triton.cdiv(n, BLOCK)
    _matmul[(tiles, tiles)](a, b, out, n, BLOCK)
