"""The carry is the last block's sum alone: two blocks are right, the third forgets the first."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _scan(x, out, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    carry = tl.zeros((ROWS,), tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)[None, :]
        inside = (row[:, None] < rows) & (col < cols)
        v = tl.load(x + row[:, None] * cols + col, mask=inside, other=0.0).to(tl.float32)
        scanned = tl.cumsum(v, 1) + carry[:, None]
        tl.store(out + row[:, None] * cols + col, scanned.to(out.dtype.element_ty), mask=inside)
        carry = tl.sum(v, 1)  # Wrong: it should be added to.


@kernel("../cumsum.py:cumsum")
def carries_one_block(x, *, out, ROWS=8, BLOCK=128):
    rows, cols = x.shape
    _scan[(triton.cdiv(rows, ROWS),)](x, out, rows, cols, ROWS, BLOCK)
