"""The sum in Triton, in two stages: up to 1024 programs leave a partial sum each, one adds them up."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _partial_sums(x, partial, n, BLOCK: tl.constexpr):
    p, stride = tl.program_id(0), tl.num_programs(0).to(tl.int64) * BLOCK
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(p.to(tl.int64) * BLOCK, n, stride):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(partial + p, tl.sum(total))


@triton.jit
def _add_up(partial, y, count, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(partial + i, mask=i < count, other=0.0))
    tl.store(y, total.to(y.dtype.element_ty))


@kernel("sum", scratch={"partial": ("fp32", 1024)}, tune={"BLOCK": [1024, 4096, 8192], "num_warps": [4, 8]})
def sum(x, *, out, partial, BLOCK=4096, num_warps=8):
    n = x.numel()
    programs = min(triton.cdiv(n, BLOCK), 1024)
    _partial_sums[(programs,)](x, partial, n, BLOCK, num_warps=num_warps)
    _add_up[(1,)](partial, out, programs, 1024)
