"""Batch normalisation at inference, in Triton: the saved mean and variance of each channel are inputs."""

import triton
import triton.language as tl

from assay import Attribute, Axis, Tensor, kernel, op


@op(
    axes={"n": Axis(typical=32), "c": Axis(min=1, max=65536, typical=64), "pixels": Axis(min=1, typical=3136)},
    inputs={
        "x": Tensor("n", "c", "pixels", range=(-1000, 1000)),
        "mean": Tensor("c", range=(-10, 10), specials=()),
        "var": Tensor("c", range=(0, 100), specials=()),
        "weight": Tensor("c", range=(-10, 10), specials=()),
        "bias": Tensor("c", range=(-10, 10), specials=()),
    },
    attributes={"eps": Attribute(1e-5, (1e-5, 1e-3))},
    outputs={"out": Tensor("n", "c", "pixels")},
    independent="n",
    operations=lambda w: 4 * w.n * w.c * w.pixels,
)
def batch_norm(x, mean, var, weight, bias, *, eps):
    """(x − mean) / √(var + eps) · weight + bias, channel by channel."""
    from torch.nn.functional import batch_norm

    return batch_norm(x, mean, var, weight, bias, training=False, eps=eps)


@triton.jit
def _norm(x, mean, var, weight, bias, out, total, c, pixels, eps, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < total
    channel = i // pixels % c
    v = tl.load(x + i, mask=inside, other=0.0).to(tl.float32)
    centre = tl.load(mean + channel, mask=inside, other=0.0).to(tl.float32)
    spread = tl.load(var + channel, mask=inside, other=1.0).to(tl.float32)
    scale = tl.load(weight + channel, mask=inside, other=0.0).to(tl.float32)
    shift = tl.load(bias + channel, mask=inside, other=0.0).to(tl.float32)
    result = (v - centre) / tl.sqrt(spread + eps) * scale + shift
    tl.store(out + i, result.to(out.dtype.element_ty), mask=inside)


@kernel("batch_norm")
def honest(x, mean, var, weight, bias, *, eps, out, BLOCK=1024):
    _, c, pixels = x.shape
    grid = (triton.cdiv(x.numel(), BLOCK),)
    _norm[grid](x, mean, var, weight, bias, out, x.numel(), c, pixels, eps, BLOCK)
