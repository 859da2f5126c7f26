"""2×2 … 3×3 maximum pooling with stride and padding, in Triton. What lies outside the image counts as −∞."""

import triton
import triton.language as tl

from assay import Attribute, Axis, Tensor, kernel, op


def out_height(w):
    return (w.h + 2 * w.padding - w.window) // w.stride + 1


def out_width(w):
    return (w.w + 2 * w.padding - w.window) // w.stride + 1


@op(
    axes={
        "planes": Axis(max=2**20, typical=1024),
        "h": Axis(min=1, max=4096, typical=56),
        "w": Axis(min=1, max=4096, typical=56),
    },
    attributes={
        "window": Attribute(2, (2, 3)),
        "stride": Attribute(2, (1, 2, 3)),
        "padding": Attribute(0, (0, 1)),
    },
    derived={"oh": out_height, "ow": out_width},
    require=lambda w: w.h + 2 * w.padding >= w.window and w.w + 2 * w.padding >= w.window,
    inputs={"x": Tensor("planes", "h", "w")},
    outputs={"out": Tensor("planes", "oh", "ow")},
    independent="planes",
)
def max_pool2d(x, *, window, stride, padding):
    """The maximum of each window; NaN where one is in it."""
    from torch.nn.functional import max_pool2d

    return max_pool2d(x[:, None], window, stride, padding)[:, 0]


@triton.jit
def _pool(x, out, total, h, w, oh, ow, stride, padding, WINDOW: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < total
    left = i % ow * stride - padding
    top = i // ow % oh * stride - padding
    plane = x + i // (oh * ow) * h * w
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    for dy in tl.static_range(WINDOW):
        for dx in tl.static_range(WINDOW):
            row, col = top + dy, left + dx
            seen = inside & (row >= 0) & (row < h) & (col >= 0) & (col < w)
            v = tl.load(plane + row * w + col, mask=seen, other=float("-inf")).to(tl.float32)
            best = tl.where((v > best) | (v != v), v, best)  # NaN is passed on, a later one for an earlier one too
    tl.store(out + i, best.to(out.dtype.element_ty), mask=inside)


@kernel("max_pool2d")
def honest(x, *, window, stride, padding, out, BLOCK=1024):
    (_, h, w), (_, oh, ow) = x.shape, out.shape
    grid = (triton.cdiv(out.numel(), BLOCK),)
    _pool[grid](x, out, out.numel(), h, w, oh, ow, stride, padding, window, BLOCK)
