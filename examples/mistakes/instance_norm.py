"""The variance as E[x²] − E[x]²: one pass fewer, and wrong as soon as the mean is far from zero."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _norm(x, out, planes, pixels, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    start_of = row[:, None] * pixels
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    squares = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, pixels, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        v = tl.load(x + start_of + i, mask=(row[:, None] < planes) & (i < pixels), other=0.0).to(tl.float32)
        total += v
        squares += v * v
    mean = tl.sum(total, 1)[:, None] / pixels
    # Wrong: the difference of two large numbers that are almost equal.
    variance = tl.maximum(tl.sum(squares, 1)[:, None] / pixels - mean * mean, 0.0)
    scale = 1.0 / tl.sqrt(variance + eps)
    for start in range(0, pixels, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        inside = (row[:, None] < planes) & (i < pixels)
        v = tl.load(x + start_of + i, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + start_of + i, ((v - mean) * scale).to(out.dtype.element_ty), mask=inside)


@kernel("../instance_norm.py:instance_norm", dtypes=["fp32"])
def one_pass_variance(x, *, eps, out, ROWS=8, BLOCK=256):
    planes, pixels = x.shape
    _norm[(triton.cdiv(planes, ROWS),)](x, out, planes, pixels, eps, ROWS, BLOCK)
