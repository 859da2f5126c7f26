"""Leaves a loop early with `break`: the interpreter is Python and does so, the compiler has no such statement."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "build or exception"


@triton.jit
def _silu(x, out, n, BLOCK: tl.constexpr, BREAKS: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    result = v
    for turn in range(2):
        if BREAKS:
            if turn == 1:
                break
        result = v / (1 + tl.exp(-v))
    tl.store(out + i, result, mask=i < n)


@kernel("silu", variant="wrong")
def wrong(x, *, out):
    _silu[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), 256, True)


@kernel("silu", variant="fixed")
def fixed(x, *, out):
    _silu[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), 256, False)
