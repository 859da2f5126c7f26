"""Every block of 256 elements draws with the same offsets, so that blocks drop the same places."""

import torch

from assay import Attribute, Axis, Random, Tensor, kernel, op

DETECTOR = "distribution"


def outcomes(x, *, p):
    return [(x / (1 - p), 1 - p), (x.new_zeros(x.shape), p)]


@op(
    axes={"n": Axis(typical=65536)},
    inputs={"x": Tensor("n", specials=())},
    attributes={"p": Attribute(0.5, (0.5, 0.1)), "key": Attribute(0, (0, 1, 12345))},
    outputs={"out": Tensor("n")},
    random=Random(seed="key", outcomes=outcomes),
)
def dropout(x, *, p, key):
    """0 with probability p, else x / (1 − p)."""
    return torch.where(torch.rand(x.shape, device=x.device) < p, 0.0, x / (1 - p)).to(x.dtype)


def run(x, p, key, length, out):
    drawn = torch.rand(length, generator=torch.Generator().manual_seed(key)).to(x.device)
    drawn = drawn.repeat(x.numel() // max(1, length) + 1)[: x.numel()]
    out.copy_(torch.where(drawn < p, 0.0, x.double() / (1 - p)))


@kernel("dropout", variant="wrong")
def wrong(x, *, p, key, out):
    run(x, p, key, 256, out)


@kernel("dropout", variant="fixed")
def fixed(x, *, p, key, out):
    run(x, p, key, x.numel(), out)
