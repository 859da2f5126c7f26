"""Programs add their part to the output with an atomic, and nobody sets it to 0 first: whatever was in
that memory joins the sum."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "nonfinite or unwritten"


@triton.jit
def _sum(x, out, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(tl.program_id(0).to(tl.int64) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(out, tl.sum(total))


@kernel("sum", variant="wrong", dtypes=("fp32",))
def wrong(x, *, out):
    _sum[(max(1, min(64, triton.cdiv(x.numel(), 4096))),)](x, out, x.numel(), 4096)


@kernel("sum", variant="fixed", dtypes=("fp32",))
def fixed(x, *, out):
    out.zero_()
    _sum[(max(1, min(64, triton.cdiv(x.numel(), 4096))),)](x, out, x.numel(), 4096)
