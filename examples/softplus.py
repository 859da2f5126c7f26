"""log(1 + e^x), in Triton, without overflow for large x and without losing digits for small ones."""

import triton
import triton.language as tl

from assay import Axis, Tensor, kernel, op


@op(
    axes={"n": Axis(typical=4194304)},
    inputs={"x": Tensor("n")},
    outputs={"out": Tensor("n")},
    independent="n",
    operations=lambda w: 12 * w.n,
)
def softplus(x):
    """log(1 + e^x)."""
    from torch.nn.functional import softplus

    return softplus(x)


@triton.jit
def _softplus(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    # max(x, 0) + log(1 + y) with y = e^−|x| ≤ 1, and log(1 + y) = 2·artanh(s) with s = y / (2 + y) ≤ 1/3.
    y = tl.exp(-tl.abs(v))
    s = y / (2 + y)
    q = s * s
    series = 1 + q * (1 / 3 + q * (1 / 5 + q * (1 / 7 + q * (1 / 9 + q * (1 / 11 + q * (1 / 13 + q / 15))))))
    result = tl.where(v < 0, 0.0, v) + 2 * s * series
    tl.store(out + i, result.to(out.dtype.element_ty), mask=i < n)


@kernel("softplus")
def honest(x, *, out, BLOCK=1024):
    _softplus[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK)
