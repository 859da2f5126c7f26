"""Only whole tiles are summed: rows beyond the last multiple of the tile's height are dropped."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _sum(x, out, n, m, ROWS: tl.constexpr, COLS: tl.constexpr):
    batch = tl.program_id(1).to(tl.int64)
    col = tl.program_id(0).to(tl.int64) * COLS + tl.arange(0, COLS)
    total = tl.zeros((ROWS, COLS), tl.float32)
    for tile in range(n // ROWS):  # Wrong: rounded down.
        row = tile * ROWS + tl.arange(0, ROWS)
        inside = (row[:, None] < n) & (col[None, :] < m)
        total += tl.load(x + (batch * n + row[:, None]) * m + col[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.store(out + batch * m + col, tl.sum(total, 0).to(out.dtype.element_ty), mask=col < m)


@kernel("../sum_over_axis.py:sum_over_axis")
def whole_tiles_only(x, *, out, ROWS=16, COLS=64):
    b, n, m = x.shape
    _sum[(triton.cdiv(m, COLS), b)](x, out, n, m, ROWS, COLS)
