"""Dropout, in Triton: the draw depends on the key and on the place alone, so it can be repeated."""

import triton
import triton.language as tl

from assay import Attribute, Axis, Random, Tensor, kernel, op


def outcomes(x, *, p):
    """What an element may become, and how likely: x / (1 − p), or 0."""
    return [(x / (1 - p), 1 - p), (x.new_zeros(x.shape), p)]


@op(
    axes={"n": Axis(min=1, max=2**31 - 1024, typical=4194304)},
    inputs={"x": Tensor("n", specials=())},
    attributes={"p": Attribute(0.5, (0.5, 0.1)), "key": Attribute(0, (0, 1, 12345))},
    outputs={"out": Tensor("n")},
    operations=lambda w: 10 * w.n,
    random=Random(seed="key", outcomes=outcomes),
)
def dropout(x, *, p, key):
    """Each element is 0 with probability p, else divided by 1 − p. Another generator draws other elements."""
    import torch

    drawn = torch.rand(x.shape, generator=torch.Generator(x.device).manual_seed(key), device=x.device)
    return torch.where(drawn < p, 0.0, x / (1 - p)).to(x.dtype)


@triton.jit
def _dropout(x, out, n, p, key, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    kept = tl.rand(key, i) >= p
    tl.store(out + i, tl.where(kept, v / (1 - p), 0.0).to(out.dtype.element_ty), mask=i < n)


@kernel("dropout")
def honest(x, *, p, key, out, BLOCK=1024):
    _dropout[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), p, key, BLOCK)
