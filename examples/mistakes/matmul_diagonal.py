"""B·diag(a) instead of diag(a)·B: the columns are scaled, which looks right on a square test with equal entries."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _scale(a, b, c, n, m, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(1).to(tl.int64) * COLS + tl.arange(0, COLS)
    inside = (row[:, None] < n) & (col[None, :] < m)
    # Wrong: the entry belongs to the row.
    scale = tl.load(a + col, mask=(col < m) & (col < n), other=0.0).to(tl.float32)
    v = tl.load(b + row[:, None] * m + col[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.store(c + row[:, None] * m + col[None, :], (scale[None, :] * v).to(c.dtype.element_ty), mask=inside)


@kernel("../matmul_diagonal.py:matmul_diagonal")
def scales_columns(a, b, *, out, ROWS=32, COLS=128):
    n, m = b.shape
    _scale[(triton.cdiv(n, ROWS), triton.cdiv(m, COLS))](a, b, out, n, m, ROWS, COLS)
