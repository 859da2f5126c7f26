"""The load has its mask, the store has not: the last block writes its idle lanes behind the output."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "guard"


@triton.jit
def _silu(x, y, n, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0)
    v = v / (1 + tl.exp(-v))
    if MASKED:
        tl.store(y + i, v, mask=i < n)
    else:
        tl.store(y + i, v)


@kernel("silu", variant="wrong", backend="triton")
def wrong(x, *, out):
    _silu[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), False, 512)


@kernel("silu", variant="fixed", backend="triton")
def fixed(x, *, out):
    _silu[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), True, 512)
