"""The first program prepares what all others read. An interpreter runs it first; a GPU promises no order."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "unstable or nonfinite or stream"
WORKLOAD = "rows=8,cols=100,dtype=fp32"


@triton.jit
def _largest(x, scale, cols, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tl.store(scale + row, tl.max(tl.load(x + row * stride + i, mask=i < cols, other=float("-inf")), 0))


@triton.jit
def _softmax(x, out, scale, rows, cols, stride, OWN: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    if OWN and row == 0:
        r = tl.arange(0, ROWS)[:, None]
        inside = (r < rows) & (i[None, :] < cols)
        every = tl.load(x + r * stride + i[None, :], mask=inside, other=float("-inf"))
        tl.store(scale + tl.arange(0, ROWS), tl.max(every, 1), mask=tl.arange(0, ROWS) < rows)
    v = tl.exp(tl.load(x + row * stride + i, mask=i < cols, other=float("-inf")) - tl.load(scale + row))
    tl.store(out + row * cols + i, v / tl.sum(v, 0), mask=i < cols)


def sizes(x):
    return {"BLOCK": triton.next_power_of_2(x.shape[1]), "ROWS": triton.next_power_of_2(x.shape[0])}


@kernel("softmax", variant="wrong", scratch={"scale": ("fp32", "rows")})
def wrong(x, *, out, scale):
    rows, cols = x.shape
    _softmax[(rows,)](x, out, scale, rows, cols, x.stride(0), OWN=True, **sizes(x))


@kernel("softmax", variant="fixed", scratch={"scale": ("fp32", "rows")})
def fixed(x, *, out, scale):
    rows, cols = x.shape
    _largest[(rows,)](x, scale, cols, x.stride(0), BLOCK=sizes(x)["BLOCK"])
    _softmax[(rows,)](x, out, scale, rows, cols, x.stride(0), OWN=False, **sizes(x))
