"""The store has its mask, the load has not: lanes beyond the end read what they must not and drop it."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "sanitizer"
NEEDS = "sanitizer"
TOOL = "memcheck"
WORKLOAD = "n=1000,dtype=fp32"


@triton.jit
def _gelu(x, y, n, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n) if MASKED else tl.load(x + i)
    tl.store(y + i, 0.5 * v * (1 + tl.erf(v * 0.7071067811865476)), mask=i < n)


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    _gelu[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), False, 1024)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    _gelu[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), True, 1024)
