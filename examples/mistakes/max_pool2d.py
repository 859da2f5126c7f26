"""The running maximum starts at 0: a window without a positive value gives 0. After a ReLU nobody notices."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _pool(x, out, total, h, w, oh, ow, stride, padding, WINDOW: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < total
    left = i % ow * stride - padding
    top = i // ow % oh * stride - padding
    plane = x + i // (oh * ow) * h * w
    best = tl.zeros((BLOCK,), tl.float32)  # Wrong: −∞ is the identity of the maximum.
    for dy in tl.static_range(WINDOW):
        for dx in tl.static_range(WINDOW):
            row, col = top + dy, left + dx
            seen = inside & (row >= 0) & (row < h) & (col >= 0) & (col < w)
            v = tl.load(plane + row * w + col, mask=seen, other=float("-inf")).to(tl.float32)
            best = tl.where((v > best) | (v != v), v, best)
    tl.store(out + i, best.to(out.dtype.element_ty), mask=inside)


@kernel("../max_pool2d.py:max_pool2d")
def starts_at_zero(x, *, window, stride, padding, out, BLOCK=1024):
    (_, h, w), (_, oh, ow) = x.shape, out.shape
    grid = (triton.cdiv(out.numel(), BLOCK),)
    _pool[grid](x, out, out.numel(), h, w, oh, ow, stride, padding, window, BLOCK)
