"""Euclidean distance in Triton: a tile of rows per program, walked in chunks of columns."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _distance(x, y, out, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS, COLS), tl.float32)
    for start in range(0, cols, COLS):
        c = start + tl.arange(0, COLS)
        i, inside = r[:, None] * cols + c[None, :], (r < rows)[:, None] & (c < cols)[None, :]
        a = tl.load(x + i, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(y + i, mask=inside, other=0.0).to(tl.float32)
        total += (a - b) * (a - b)
    tl.store(out + r, tl.sqrt(tl.sum(total, 1)).to(out.dtype.element_ty), mask=r < rows)


@kernel("euclidean_distance", tune={"BLOCK": [1024, 2048, 4096], "num_warps": [2, 4, 8]})
def euclidean_distance(x, y, *, out, BLOCK=2048, num_warps=4):
    rows, cols = x.shape
    COLS = min(BLOCK, triton.next_power_of_2(max(cols, 1)))
    ROWS = BLOCK // COLS
    _distance[(triton.cdiv(rows, ROWS),)](x, y, out, rows, cols, ROWS, COLS, num_warps=num_warps)
