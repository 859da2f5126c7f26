"""A program has 64 rows and asks only whether its first one exists: the last program writes rows that do not."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "guard"


@triton.jit
def _col_scale(x, scale, y, rows, cols, EACH_ROW: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    across = tl.cdiv(cols, BLOCK)
    first = tl.program_id(0).to(tl.int64) // across * ROWS
    r = (first + tl.arange(0, ROWS))[:, None]
    c = (tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK))[None, :]
    v = tl.load(x + r * cols + c, mask=(r < rows) & (c < cols), other=0)
    v *= tl.load(scale + c, mask=c < cols, other=0)
    tl.store(y + r * cols + c, v, mask=((r if EACH_ROW else first) < rows) & (c < cols))


def run(x, scale, out, each_row):
    rows, cols = x.shape
    if out.numel():
        _col_scale[(triton.cdiv(rows, 64) * triton.cdiv(cols, 256),)](x, scale, out, rows, cols, each_row, 64, 256)


@kernel("col_scale", variant="wrong")
def wrong(x, scale, *, out):
    run(x, scale, out, False)


@kernel("col_scale", variant="fixed")
def fixed(x, scale, *, out):
    run(x, scale, out, True)
