"""The store has its mask, the load has not: what it reads behind the end is thrown away, until the tensor ends where
the memory does."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "overread"


@triton.jit
def _silu(x, out, n, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    if MASKED:
        v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    else:
        v = tl.load(x + i).to(tl.float32)
    tl.store(out + i, v / (1 + tl.exp(-v)), mask=i < n)


@kernel("silu", variant="wrong")
def wrong(x, *, out):
    _silu[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), 256, False)


@kernel("silu", variant="fixed")
def fixed(x, *, out):
    _silu[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), 256, True)
