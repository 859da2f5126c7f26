"""A matrix divided by its Frobenius norm, in Triton: partial sums of squares first, then every program adds them up."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"rows": Axis(min=1, typical=1024), "cols": Axis(min=1, typical=1024)},
    inputs={"x": Tensor("rows", "cols", range=(-100, 100))},
    outputs={"out": Tensor("rows", "cols")},
    operations=lambda w: 3 * w.rows * w.cols,
)
def frobenius_norm(x):
    """x / max(√Σx², 1e-12)."""
    return x / x.square().sum().sqrt().clamp(min=1e-12)


@triton.jit
def _squares(x, partial, n, BLOCK: tl.constexpr):
    p, step = tl.program_id(0), tl.num_programs(0).to(tl.int64) * BLOCK
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(p.to(tl.int64) * BLOCK, n, step):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
        total += v * v
    tl.store(partial + p, tl.sum(total))


@triton.jit
def _divide(x, partial, out, n, programs, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    part = tl.arange(0, PARTS)
    norm = tl.sqrt(tl.sum(tl.load(partial + part, mask=part < programs, other=0.0)))
    norm = tl.where(norm < 1e-12, 1e-12, norm)  # tl.maximum would drop NaN
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(out + i, (v / norm).to(out.dtype.element_ty), mask=i < n)


@kernel("frobenius_norm", scratch={"partial": ("fp32", 256)})
def honest(x, *, out, partial, BLOCK=512):
    n = x.numel()
    blocks = triton.cdiv(n, BLOCK)
    programs = min(blocks, 256)
    _squares[(programs,)](x, partial, n, BLOCK)
    _divide[(blocks,)](x, partial, out, n, programs, 256, BLOCK)
