"""The mean of the blocks' means: the last block, which is shorter, weighs as much as the others."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _squares(x, target, partial, n, blocks, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    total = 0.0
    for block in range(p, blocks, tl.num_programs(0)):
        i = block * BLOCK + tl.arange(0, BLOCK)
        away = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
        away -= tl.load(target + i, mask=i < n, other=0.0).to(tl.float32)
        total += tl.sum(away * away) / tl.minimum(n - block * BLOCK, BLOCK)
    tl.store(partial + p, total)


@triton.jit
def _mean(partial, out, programs, blocks, PARTS: tl.constexpr):
    p = tl.arange(0, PARTS)
    total = tl.sum(tl.load(partial + p, mask=p < programs, other=0.0))
    tl.store(out, (total / blocks).to(out.dtype.element_ty))  # Wrong: blocks are not equally long.


@kernel("../mse_loss.py:mse_loss", scratch={"partial": ("fp32", 256)})
def mean_of_means(x, target, *, out, partial, BLOCK=256):
    n = x.numel()
    blocks = triton.cdiv(n, BLOCK)
    programs = min(blocks, 256)
    _squares[(programs,)](x, target, partial, n, blocks, BLOCK)
    _mean[(1,)](partial, out, programs, blocks, 256)
