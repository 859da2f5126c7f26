"""e^x − 1 as it is written: for x = −0.001 only 14 of the 24 bits are left."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _elu(x, out, n, alpha, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    below = tl.exp(v) - 1  # Wrong near 0, where both are almost 1.
    tl.store(out + i, tl.where(v > 0, v, alpha * below).to(out.dtype.element_ty), mask=i < n)


@kernel("../elu.py:elu", dtypes=["fp32"])
def cancels_near_zero(x, *, alpha, out, BLOCK=1024):
    _elu[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), alpha, BLOCK)
