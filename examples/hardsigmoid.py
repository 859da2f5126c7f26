"""The piecewise linear sigmoid, in Triton: a ramp from 0 at −3 to 1 at 3."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"n": Axis(typical=4194304)},
    inputs={"x": Tensor("n")},
    outputs={"out": Tensor("n")},
    independent="n",
    operations=lambda w: 4 * w.n,
)
def hardsigmoid(x):
    """min(max(x + 3, 0), 6) / 6."""
    from torch.nn.functional import hardsigmoid

    return hardsigmoid(x)


@triton.jit
def _ramp(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32) + 3
    v = tl.where(v < 0, 0.0, tl.where(v > 6, 6.0, v))  # comparisons pass NaN on
    tl.store(out + i, (v / 6).to(out.dtype.element_ty), mask=i < n)


@kernel("hardsigmoid")
def honest(x, *, out, BLOCK=1024):
    _ramp[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK)
