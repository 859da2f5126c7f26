"""The mean over all elements instead of over the rows: too small by the number of columns."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _terms(log_q, p, partial, n, BLOCK: tl.constexpr):
    program, step = tl.program_id(0), tl.num_programs(0).to(tl.int64) * BLOCK
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(program.to(tl.int64) * BLOCK, n, step):
        i = start + tl.arange(0, BLOCK)
        q = tl.load(log_q + i, mask=i < n, other=0.0).to(tl.float32)
        v = tl.load(p + i, mask=i < n, other=0.0).to(tl.float32)
        total += tl.where(v > 0.0, v * (tl.log(tl.where(v > 0.0, v, 1.0)) - q), 0.0)
    tl.store(partial + program, tl.sum(total))


@triton.jit
def _mean(partial, out, programs, n, PARTS: tl.constexpr):
    i = tl.arange(0, PARTS)
    total = tl.sum(tl.load(partial + i, mask=i < programs, other=0.0))
    tl.store(out, (total / n).to(out.dtype.element_ty))  # Wrong: by the number of rows.


@kernel("../kl_divergence.py:kl_divergence", scratch={"partial": ("fp32", 256)})
def mean_over_elements(log_q, p, *, out, partial, BLOCK=512):
    n = p.numel()
    programs = min(triton.cdiv(n, BLOCK), 256)
    _terms[(programs,)](log_q, p, partial, n, BLOCK)
    _mean[(1,)](partial, out, programs, n, 256)
