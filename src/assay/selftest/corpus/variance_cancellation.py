"""Variance as E[x²] − µ² in float32: far from zero the two agree in nearly all their digits, and what
is left is noise."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "values"
WORKLOAD = "rows=7,cols=100,dtype=fp32,values=offset"


@triton.jit
def _mean_var(x, mean, var, cols, TWICE: tl.constexpr, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + c, mask=c < cols, other=0)
    mu = tl.sum(v, 0) / cols
    if TWICE:
        d = tl.where(c < cols, v - mu, 0)
        spread = tl.sum(d * d, 0) / cols
    else:
        spread = tl.sum(v * v, 0) / cols - mu * mu
    tl.store(mean + row, mu)
    tl.store(var + row, spread)


@kernel("mean_var", variant="wrong")
def wrong(x, *, out, var):
    rows, cols = x.shape
    _mean_var[(rows,)](x, out, var, cols, False, triton.next_power_of_2(cols))


@kernel("mean_var", variant="fixed")
def fixed(x, *, out, var):
    rows, cols = x.shape
    _mean_var[(rows,)](x, out, var, cols, True, triton.next_power_of_2(cols))
