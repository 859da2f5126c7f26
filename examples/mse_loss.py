"""The mean squared error, in Triton, in two stages: partial sums, then one program adds them and divides once."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"n": Axis(min=1, typical=4194304)},
    inputs={"x": Tensor("n", range=(-100, 100)), "target": Tensor("n", range=(-100, 100))},
    outputs={"out": Tensor()},
    operations=lambda w: 3 * w.n,
)
def mse_loss(x, target):
    """mean((x − target)²)."""
    from torch.nn.functional import mse_loss

    return mse_loss(x, target)


@triton.jit
def _squares(x, target, partial, n, BLOCK: tl.constexpr):
    p, step = tl.program_id(0), tl.num_programs(0).to(tl.int64) * BLOCK
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(p.to(tl.int64) * BLOCK, n, step):
        i = start + tl.arange(0, BLOCK)
        away = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
        away -= tl.load(target + i, mask=i < n, other=0.0).to(tl.float32)
        total += away * away
    tl.store(partial + p, tl.sum(total))


@triton.jit
def _mean(partial, out, programs, n, PARTS: tl.constexpr):
    p = tl.arange(0, PARTS)
    total = tl.sum(tl.load(partial + p, mask=p < programs, other=0.0))
    tl.store(out, (total / n).to(out.dtype.element_ty))


@kernel("mse_loss", scratch={"partial": ("fp32", 256)})
def honest(x, target, *, out, partial, BLOCK=1024):
    n = x.numel()
    programs = min(triton.cdiv(n, BLOCK), 256)
    _squares[(programs,)](x, target, partial, n, BLOCK)
    _mean[(1,)](partial, out, programs, n, 256)
