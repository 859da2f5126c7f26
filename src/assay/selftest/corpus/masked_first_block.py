"""Online softmax: after a first block that a mask has made −inf as a whole, the running maximum is still −inf, and
e^(−inf − −inf) is NaN."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "nonfinite"


@triton.jit
def _softmax(x, out, cols, stride, GUARDED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    top = tl.full((1,), float("-inf"), tl.float32)
    total = tl.zeros((1,), tl.float32)
    for start in range(0, cols, BLOCK):
        i = start + lane
        v = tl.load(x + row * stride + i, mask=i < cols, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(top, tl.max(v, 0))
        base = higher
        if GUARDED:
            base = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(top - base) + tl.sum(tl.exp(v - base), 0)
        top = higher
    for start in range(0, cols, BLOCK):
        i = start + lane
        v = tl.load(x + row * stride + i, mask=i < cols, other=float("-inf")).to(tl.float32)
        tl.store(out + row * cols + i, tl.exp(v - top) / total, mask=i < cols)


@kernel("softmax", backend="triton", variant="wrong")
def wrong(x, *, out, BLOCK=64):
    _softmax[(x.shape[0],)](x, out, x.shape[1], x.stride(0), False, BLOCK)


@kernel("softmax", backend="triton", variant="fixed")
def fixed(x, *, out, BLOCK=64):
    _softmax[(x.shape[0],)](x, out, x.shape[1], x.stride(0), True, BLOCK)
