"""eps is added to the standard deviation instead of the variance: a difference of a few parts in a million."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _norm(x, mean, var, weight, bias, out, total, c, pixels, eps, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < total
    channel = i // pixels % c
    v = tl.load(x + i, mask=inside, other=0.0).to(tl.float32)
    centre = tl.load(mean + channel, mask=inside, other=0.0).to(tl.float32)
    spread = tl.load(var + channel, mask=inside, other=1.0).to(tl.float32)
    scale = tl.load(weight + channel, mask=inside, other=0.0).to(tl.float32)
    shift = tl.load(bias + channel, mask=inside, other=0.0).to(tl.float32)
    result = (v - centre) / (tl.sqrt(spread) + eps) * scale + shift  # Wrong: √(var + eps).
    tl.store(out + i, result.to(out.dtype.element_ty), mask=inside)


@kernel("../batch_norm.py:batch_norm", dtypes=["fp32"])
def eps_outside_the_root(x, mean, var, weight, bias, *, eps, out, BLOCK=1024):
    _, c, pixels = x.shape
    grid = (triton.cdiv(x.numel(), BLOCK),)
    _norm[grid](x, mean, var, weight, bias, out, x.numel(), c, pixels, eps, BLOCK)
