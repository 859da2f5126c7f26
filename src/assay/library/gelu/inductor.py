"""The gradient of gelu_tanh compiled by inductor, from a formula of its own.

Not from PyTorch's: in ½·x·(1 − tanh²)·u′ what tanh rounds away comes back up to twelve times, and the compiled tanh of
some CPUs rounds less well than PyTorch's own. σ(2u) and σ(2u)·σ(−2u) keep their bits."""

import torch

from assay import kernel


@torch.compile(fullgraph=True, dynamic=True)
def _tanh_backward(dy, x, out):
    v = x.float()
    w = 1.5957691216057308 * (v + 0.044715 * v * v * v)
    e = torch.exp(-w.abs())
    phi = torch.where(w < 0, e, 1.0) / (1 + e)
    bell = e / ((1 + e) * (1 + e)) * 1.5957691216057308 * (1 + 0.134145 * v * v)
    slope = phi + torch.where(e == 0, 0.0, v * bell)  # far out 0·v³ would be NaN
    out.copy_(dy.float() * slope)


@kernel("gelu_tanh_backward")
def gelu_tanh_backward(dy, x, *, out):
    _tanh_backward(dy, x, out)
