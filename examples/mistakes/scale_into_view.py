"""The output is taken to be contiguous: its rows are written where the gaps of the larger tensor lie."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _scale(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(out + i, (v * 2).to(out.dtype.element_ty), mask=i < n)  # Wrong: out has a row stride.


@kernel("../scale_into_view.py:scale_into_view")
def ignores_the_stride(x, *, out, BLOCK=1024):
    _scale[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK)
