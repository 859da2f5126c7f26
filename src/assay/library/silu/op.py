"""SiLU (swish): x·σ(x), and its backward pass."""

from assay import Axis, Tensor, op
from assay.library.gradient import gradients

AXES = {"n": Axis(typical=4194304)}


@op(
    axes=AXES,
    inputs={"x": Tensor("n")},
    outputs={"out": Tensor("n")},
    independent="n",
    operations=lambda w: 4 * w.n,
    magnitude=lambda x: x.abs(),
    roundings=3,  # an exponential within 2 ulps; 1 + e, the division or product
)
def silu(x):
    """x·σ(x)."""
    from torch.nn.functional import silu

    return silu(x)


@op(
    axes=AXES,
    inputs={"dy": Tensor("n"), "x": Tensor("n")},
    outputs={"out": Tensor("n")},
    independent="n",
    operations=lambda w: 8 * w.n,
    # 1 − σ(x) has lost what σ(x) lost, at the scale of 1, and x·σ(x) multiplies it.
    magnitude=lambda dy, x: dy.abs() * (1 + x.abs() * x.sigmoid()),
    roundings=4,  # an exponential within 2 ulps, 1 + e and the division; products and a sum
)
def silu_backward(dy, x):
    """The gradient of silu with respect to x."""
    from torch import float32, promote_types

    wide = promote_types(x.dtype, float32)  # here PyTorch composes the gradient and would round fp16 at every step
    return gradients(silu.reference, [x.to(wide)], dy.to(wide))[0].to(x.dtype)
