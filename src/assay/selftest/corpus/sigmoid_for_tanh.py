"""x·σ(1.702·x), the quick GELU of another model family: close enough that the loss curve looks healthy."""

import torch

from assay import kernel

DETECTOR = "values"


@kernel("gelu_tanh", variant="wrong")
def wrong(x, *, out):
    torch.mul(x, torch.sigmoid(1.702 * x), out=out)


@kernel("gelu_tanh", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, approximate="tanh", out=out)
