"""Mean and variance in Triton: a tile of rows per program; two passes per chunk, joined by Chan's formula."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _mean_var(x, mean, var, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    mu, squares = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)  # of the columns before start
    for start in range(0, cols, COLS):
        c = start + tl.arange(0, COLS)
        inside = (r < rows)[:, None] & (c < cols)[None, :]
        v = tl.load(x + r[:, None] * cols + c[None, :], mask=inside, other=0.0).to(tl.float32)
        count = tl.minimum(cols - start, COLS)
        chunk = tl.sum(v, 1) / count
        deviation = tl.where(inside, v - chunk[:, None], 0.0)
        apart, share = chunk - mu, count / (start + count)
        mu += apart * share
        squares += tl.sum(deviation * deviation, 1) + apart * apart * start * share
    tl.store(mean + r, mu.to(mean.dtype.element_ty), mask=r < rows)
    tl.store(var + r, (squares / cols).to(var.dtype.element_ty), mask=r < rows)


@kernel("mean_var", tune={"BLOCK": [1024, 2048, 4096, 8192], "num_warps": [2, 4, 8]})
def mean_var(x, *, out, var, BLOCK=4096, num_warps=4):
    rows, cols = x.shape
    COLS = min(BLOCK, triton.next_power_of_2(cols))
    ROWS = BLOCK // COLS
    _mean_var[(triton.cdiv(rows, ROWS),)](x, out, var, rows, cols, ROWS, COLS, num_warps=num_warps)
