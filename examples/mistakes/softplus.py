"""The formula as it is written: e^x overflows from 89 on, and 1 + e^x is 1 below −17."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _softplus(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(out + i, tl.log(1 + tl.exp(v)).to(out.dtype.element_ty), mask=i < n)  # Wrong at both ends.


@kernel("../softplus.py:softplus")
def overflows(x, *, out, BLOCK=1024):
    _softplus[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK)
