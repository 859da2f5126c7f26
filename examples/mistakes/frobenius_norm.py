"""Every block divides by the norm of its own elements: right as long as one block holds the whole matrix."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _norm(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    norm = tl.sqrt(tl.sum(v * v))  # Wrong: of this block, not of the matrix.
    norm = tl.where(norm < 1e-12, 1e-12, norm)
    tl.store(out + i, (v / norm).to(out.dtype.element_ty), mask=i < n)


@kernel("../frobenius_norm.py:frobenius_norm")
def norm_of_the_block(x, *, out, BLOCK=512):
    _norm[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK)
