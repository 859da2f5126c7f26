"""A row's running total of exponentials is kept in float16, the format of the data: every chunk of 256
columns rounds it, and a long flat row makes it infinite."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "values"
DTYPE = "fp16"


@triton.jit
def _softmax(x, y, rows, cols, stride, WIDE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    top = tl.full((ROWS, BLOCK), -float("inf"), tl.float32)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)[None, :]
        v = tl.load(x + r * stride + c, mask=(r < rows) & (c < cols), other=-float("inf")).to(tl.float32)
        top = tl.maximum(top, v)
    top_row = tl.max(top, 1, keep_dims=True)
    total = tl.zeros((ROWS, 1), tl.float32 if WIDE else tl.float16)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)[None, :]
        v = tl.load(x + r * stride + c, mask=(r < rows) & (c < cols), other=-float("inf")).to(tl.float32)
        total += tl.sum(tl.exp(v - top_row), 1, keep_dims=True).to(total.dtype)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)[None, :]
        v = tl.load(x + r * stride + c, mask=(r < rows) & (c < cols), other=-float("inf")).to(tl.float32)
        v = tl.exp(v - top_row) / total.to(tl.float32)
        tl.store(y + r * cols + c, v.to(y.dtype.element_ty), mask=(r < rows) & (c < cols))


def run(x, out, wide):
    rows, cols = x.shape
    BLOCK = min(256, triton.next_power_of_2(cols))
    ROWS = 1 if rows == 1 else 2048 // BLOCK
    _softmax[(triton.cdiv(rows, ROWS),)](x, out, rows, cols, x.stride(0), wide, ROWS, BLOCK)


@kernel("softmax", variant="wrong")
def wrong(x, *, out):
    run(x, out, False)


@kernel("softmax", variant="fixed")
def fixed(x, *, out):
    run(x, out, True)
