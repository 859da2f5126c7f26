"""ELU, in Triton. e^x − 1 near 0 is a difference of equals: a short series takes its place there."""

import triton
import triton.language as tl

from assay import Attribute, Axis, Tensor, kernel, op


@op(
    axes={"n": Axis(typical=4194304)},
    inputs={"x": Tensor("n")},
    attributes={"alpha": Attribute(1.0, (1.0, 0.5))},
    outputs={"out": Tensor("n")},
    independent="n",
    operations=lambda w: 4 * w.n,
)
def elu(x, *, alpha):
    """x where x > 0, else alpha·(e^x − 1)."""
    from torch.nn.functional import elu

    return elu(x, alpha)


@triton.jit
def _elu(x, out, n, alpha, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    # x + x²/2! + … + x⁷/7!: for |x| < 0.35 the rest is below half an ulp.
    series = v * (1 + v / 2 * (1 + v / 3 * (1 + v / 4 * (1 + v / 5 * (1 + v / 6 * (1 + v / 7))))))
    below = tl.where(v > -0.35, series, tl.exp(v) - 1)
    tl.store(out + i, tl.where(v > 0, v, alpha * below).to(out.dtype.element_ty), mask=i < n)


@kernel("elu")
def honest(x, *, alpha, out, BLOCK=1024):
    _elu[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), alpha, BLOCK)
