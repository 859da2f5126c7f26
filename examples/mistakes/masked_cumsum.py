"""The mask is applied to the result: what is masked out is not shown, but it was summed."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _scan(x, mask, out, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    carry = tl.zeros((ROWS,), tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)[None, :]
        inside = (row[:, None] < rows) & (col < cols)
        at = row[:, None] * cols + col
        kept = tl.load(mask + at, mask=inside, other=0).to(tl.int1)
        v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        scanned = tl.cumsum(v, 1) + carry[:, None]
        # Wrong: masked before the scan, not after it.
        tl.store(out + at, tl.where(kept, scanned, 0.0).to(out.dtype.element_ty), mask=inside)
        # The last column; Triton 3.7 cannot compile `carry += tl.sum(v, 1)` where `carry` is used elsewhere too.
        carry = tl.sum(tl.where(col == start + BLOCK - 1, scanned, 0.0), 1)


@kernel("../masked_cumsum.py:masked_cumsum")
def masks_the_result(x, mask, *, out, ROWS=8, BLOCK=128):
    rows, cols = x.shape
    _scan[(triton.cdiv(rows, ROWS),)](x, mask, out, rows, cols, ROWS, BLOCK)
