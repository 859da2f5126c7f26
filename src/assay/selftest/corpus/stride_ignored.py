"""Rows that lie apart in memory are read as if they were packed: the stride is taken to be the number
of columns."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "overread"


@triton.jit
def _transpose(x, out, rows, cols, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i % cols + i // cols * stride, mask=i < rows * cols)
    tl.store(out + i % cols * rows + i // cols, v, mask=i < rows * cols)


def run(x, out, stride):
    rows, cols = x.shape
    _transpose[(triton.cdiv(rows * cols, 1024),)](x, out, rows, cols, stride, 1024)


@kernel("transpose", variant="wrong")
def wrong(x, *, out):
    run(x, out, x.shape[1])


@kernel("transpose", variant="fixed")
def fixed(x, *, out):
    run(x, out, x.stride(0))
