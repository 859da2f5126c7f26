"""The elements that are kept are not divided by 1 − p: the mean of the result is smaller than that of x."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _dropout(x, out, n, p, key, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    kept = tl.rand(key, i) >= p
    tl.store(out + i, tl.where(kept, v, 0.0).to(out.dtype.element_ty), mask=i < n)  # Wrong: v / (1 − p).


@kernel("../dropout.py:dropout")
def not_compensated(x, *, p, key, out, BLOCK=1024):
    _dropout[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), p, key, BLOCK)
