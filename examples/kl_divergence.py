"""The Kullback–Leibler divergence, summed and divided by the number of rows, in Triton: rows of probabilities."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"rows": Axis(min=1, typical=4096), "cols": Axis(min=1, typical=512)},
    inputs={
        "log_q": Tensor("rows", "cols", range=(-20, 0), specials=()),
        "p": Tensor("rows", "cols", form="row_stochastic", specials=()),
    },
    outputs={"out": Tensor()},
    operations=lambda w: 4 * w.rows * w.cols,
)
def kl_divergence(log_q, p):
    """Σ p·(log p − log q) / rows, where 0·log 0 is 0."""
    from torch.nn.functional import kl_div

    return kl_div(log_q, p, reduction="batchmean")


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
def _mean(partial, out, programs, rows, PARTS: tl.constexpr):
    i = tl.arange(0, PARTS)
    total = tl.sum(tl.load(partial + i, mask=i < programs, other=0.0))
    tl.store(out, (total / rows).to(out.dtype.element_ty))


@kernel("kl_divergence", scratch={"partial": ("fp32", 256)})
def honest(log_q, p, *, out, partial, BLOCK=512):
    n = p.numel()
    programs = min(triton.cdiv(n, BLOCK), 256)
    _terms[(programs,)](log_q, p, partial, n, BLOCK)
    _mean[(1,)](partial, out, programs, p.shape[0], 256)
