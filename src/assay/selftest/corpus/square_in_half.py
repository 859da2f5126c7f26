"""The derivative's inner polynomial is evaluated in float16: three digits, and above 700 an infinity that
meets tanh's slope of zero."""

import torch

from assay import kernel

DETECTOR = "values or nonfinite"
DTYPE = "fp16"


def run(dy, x, out, inner):
    v = x.double()
    t = torch.tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))
    slope = 0.5 * (1 + t) + 0.5 * v * (1 - t * t) * inner
    out.copy_(dy.double() * slope)


@kernel("gelu_tanh_backward", variant="wrong")
def wrong(dy, x, *, out):
    run(dy, x, out, 0.7978845608028654 * (1 + 0.134145 * x * x))


@kernel("gelu_tanh_backward", variant="fixed")
def fixed(dy, x, *, out):
    run(dy, x, out, 0.7978845608028654 * (1 + 0.134145 * x.double() * x.double()))
