"""The derivative of 0.044715·x³ is taken as 0.044715·x²: the 3 is lost, and a training run still converges."""

import torch

from assay import kernel

DETECTOR = "values"


def run(dy, x, out, factor):
    v = x.double()
    t = torch.tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))
    slope = 0.5 * (1 + t) + 0.5 * v * (1 - t * t) * 0.7978845608028654 * (1 + factor * 0.044715 * v * v)
    out.copy_(dy.double() * slope)


@kernel("gelu_tanh_backward", variant="wrong")
def wrong(dy, x, *, out):
    run(dy, x, out, 1)


@kernel("gelu_tanh_backward", variant="fixed")
def fixed(dy, x, *, out):
    run(dy, x, out, 3)
