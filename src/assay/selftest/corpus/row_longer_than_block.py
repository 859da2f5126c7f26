"""One block of 1024 columns is held to be enough for any row; in longer ones the rest is neither read
nor written."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "unwritten"
WORKLOAD = "rows=3,cols=1500,dtype=fp32"


@triton.jit
def _softmax(x, y, cols, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + c, mask=c < cols, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * cols + c, e / tl.sum(e, 0), mask=c < cols)


@kernel("softmax", variant="wrong")
def wrong(x, *, out):
    rows, cols = x.shape
    _softmax[(rows,)](x, out, cols, 1024)


@kernel("softmax", variant="fixed")
def fixed(x, *, out):
    rows, cols = x.shape
    _softmax[(rows,)](x, out, cols, triton.next_power_of_2(cols))
