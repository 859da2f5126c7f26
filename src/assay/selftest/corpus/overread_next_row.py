"""A whole row is loaded as one power of two of columns without a mask, so its sum takes in the start
of the next row."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "overread"
WORKLOAD = "rows=5,cols=100,dtype=fp32"


@triton.jit
def _distance(x, y, out, cols, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    if MASKED:
        d = tl.load(x + row * cols + c, mask=c < cols, other=0) - tl.load(y + row * cols + c, mask=c < cols, other=0)
    else:
        d = tl.load(x + row * cols + c) - tl.load(y + row * cols + c)
    tl.store(out + row, tl.sqrt(tl.sum(d * d)))


@kernel("euclidean_distance", variant="wrong")
def wrong(x, y, *, out):
    rows, cols = x.shape
    _distance[(rows,)](x, y, out, cols, False, triton.next_power_of_2(cols))


@kernel("euclidean_distance", variant="fixed")
def fixed(x, y, *, out):
    rows, cols = x.shape
    _distance[(rows,)](x, y, out, cols, True, triton.next_power_of_2(cols))
