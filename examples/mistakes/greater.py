"""`not (x <= threshold)`: the same for numbers, the opposite for NaN."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _compare(x, threshold, out, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    col = (tl.program_id(1).to(tl.int64) * COLS + tl.arange(0, COLS))[None, :]
    inside = (row < rows) & (col < cols)
    v = tl.load(x + row * cols + col, mask=inside, other=0.0).to(tl.float32)
    limit = tl.load(threshold + col, mask=col < cols, other=0.0).to(tl.float32)
    tl.store(out + row * cols + col, ~(v <= limit), mask=inside)  # Wrong: true for NaN.


@kernel("../greater.py:greater")
def nan_is_greater(x, threshold, *, out, ROWS=16, COLS=128):
    rows, cols = x.shape
    _compare[(triton.cdiv(rows, ROWS), triton.cdiv(cols, COLS))](x, threshold, out, rows, cols, ROWS, COLS)
