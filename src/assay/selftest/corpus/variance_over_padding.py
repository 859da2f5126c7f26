"""Lanes beyond the row are loaded as 0, which is right for the sum; but 0 − µ is not 0, and they join
the variance."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "values"
WORKLOAD = "rows=7,cols=100,dtype=fp32,values=offset"


@triton.jit
def _mean_var(x, mean, var, cols, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + c, mask=c < cols, other=0)
    mu = tl.sum(v, 0) / cols
    d = tl.where(c < cols, v - mu, 0) if MASKED else v - mu
    tl.store(mean + row, mu)
    tl.store(var + row, tl.sum(d * d, 0) / cols)


@kernel("mean_var", variant="wrong", backend="triton")
def wrong(x, *, out, var):
    rows, cols = x.shape
    _mean_var[(rows,)](x, out, var, cols, False, triton.next_power_of_2(cols))


@kernel("mean_var", variant="fixed", backend="triton")
def fixed(x, *, out, var):
    rows, cols = x.shape
    _mean_var[(rows,)](x, out, var, cols, True, triton.next_power_of_2(cols))
