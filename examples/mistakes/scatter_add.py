"""Read, add, write: of two values for the same place in one block, one is lost."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _copy(base, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(base + i, mask=i < n), mask=i < n)


@triton.jit
def _add(index, x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(index + i, mask=i < n, other=0)
    # Wrong: not atomic.
    before = tl.load(out + place, mask=i < n, other=0.0)
    tl.store(out + place, before + tl.load(x + i, mask=i < n, other=0.0), mask=i < n)


@kernel("../scatter_add.py:scatter_add")
def not_atomic(base, index, x, *, out, BLOCK=256):
    _copy[(triton.cdiv(base.numel(), BLOCK),)](base, out, base.numel(), BLOCK)
    _add[(triton.cdiv(x.numel(), BLOCK),)](index, x, out, x.numel(), BLOCK)
