"""The logarithm of a softmax: what lies 104 below the maximum has underflowed to 0, and its logarithm is −∞."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _log_softmax(x, out, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    i = tl.arange(0, BLOCK)[None, :]
    inside = (row[:, None] < rows) & (i < cols)
    v = tl.load(x + row[:, None] * cols + i, mask=inside, other=float("-inf")).to(tl.float32)
    e = tl.where(inside, tl.exp(v - tl.max(v, 1)[:, None]), 0.0)
    probability = e / tl.sum(e, 1)[:, None]
    # Wrong: (v − max) − log Σe.
    tl.store(out + row[:, None] * cols + i, tl.log(probability).to(out.dtype.element_ty), mask=inside)


@kernel("../log_softmax.py:log_softmax")
def logarithm_of_softmax(x, *, out, ROWS=8):
    rows, cols = x.shape
    _log_softmax[(triton.cdiv(rows, ROWS),)](x, out, rows, cols, ROWS, triton.next_power_of_2(cols))
