"""3×3 depthwise convolution with padding 1, in Triton: each channel has a filter of its own."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={
        "n": Axis(max=4096, typical=16),
        "c": Axis(min=1, max=4096, typical=64),
        "h": Axis(min=1, max=4096, typical=56),
        "w": Axis(min=1, max=4096, typical=56),
    },
    inputs={
        "x": Tensor("n", "c", "h", "w", range=(-16, 16), specials=()),
        "weight": Tensor("c", 3, 3, range=(-4, 4), specials=()),
    },
    outputs={"out": Tensor("n", "c", "h", "w")},
    independent="n",
    operations=lambda w: 18 * w.n * w.c * w.h * w.w,
)
def conv2d_depthwise(x, weight):
    """Σ x[n, c, y + i − 1, x + j − 1]·weight[c, i, j], zeros around the image."""
    from torch.nn.functional import conv2d

    return conv2d(x, weight[:, None], padding=1, groups=x.shape[1])


@triton.jit
def _conv(x, weight, out, total, channels, h, w, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < total
    col, row, channel = i % w, i // w % h, i // (w * h) % channels
    acc = tl.zeros((BLOCK,), tl.float32)
    for dy in tl.static_range(3):
        for dx in tl.static_range(3):
            y, z = row + dy - 1, col + dx - 1
            seen = inside & (y >= 0) & (y < h) & (z >= 0) & (z < w)
            v = tl.load(x + i + (dy - 1) * w + (dx - 1), mask=seen, other=0.0).to(tl.float32)
            acc += v * tl.load(weight + channel * 9 + dy * 3 + dx, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + i, acc.to(out.dtype.element_ty), mask=inside)


@kernel("conv2d_depthwise")
def honest(x, weight, *, out, BLOCK=1024):
    _, c, h, w = x.shape
    _conv[(triton.cdiv(x.numel(), BLOCK),)](x, weight, out, x.numel(), c, h, w, BLOCK)
