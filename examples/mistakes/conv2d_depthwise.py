"""The right border is off by one: column w counts as a column of the image, so a row continues in the next one."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _conv(x, weight, out, total, channels, h, w, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < total
    col, row, channel = i % w, i // w % h, i // (w * h) % channels
    acc = tl.zeros((BLOCK,), tl.float32)
    for dy in tl.static_range(3):
        for dx in tl.static_range(3):
            y, z = row + dy - 1, col + dx - 1
            seen = inside & (y >= 0) & (y < h) & (z >= 0) & (z <= w)  # Wrong: z < w.
            seen = seen & (i + (dy - 1) * w + (dx - 1) < total)
            v = tl.load(x + i + (dy - 1) * w + (dx - 1), mask=seen, other=0.0).to(tl.float32)
            acc += v * tl.load(weight + channel * 9 + dy * 3 + dx, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + i, acc.to(out.dtype.element_ty), mask=inside)


@kernel("../conv2d_depthwise.py:conv2d_depthwise")
def right_border_off_by_one(x, weight, *, out, BLOCK=1024):
    _, c, h, w = x.shape
    _conv[(triton.cdiv(x.numel(), BLOCK),)](x, weight, out, x.numel(), c, h, w, BLOCK)
