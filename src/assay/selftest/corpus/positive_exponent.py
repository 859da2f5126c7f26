"""σ(x) as e^x / (1 + e^x): above 88 both are infinite in float32, and their quotient is NaN."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "nonfinite"


@triton.jit
def _silu(x, y, n, NEGATIVE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    if NEGATIVE:
        v = v / (1 + tl.exp(-v))
    else:
        v = v * (tl.exp(v) / (1 + tl.exp(v)))
    tl.store(y + i, v, mask=i < n)


@kernel("silu", variant="wrong")
def wrong(x, *, out):
    _silu[(triton.cdiv(x.numel(), 4096),)](x, out, x.numel(), False, 4096)


@kernel("silu", variant="fixed")
def fixed(x, *, out):
    _silu[(triton.cdiv(x.numel(), 4096),)](x, out, x.numel(), True, 4096)
