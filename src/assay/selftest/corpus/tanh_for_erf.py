"""The tanh approximation where the exact function was asked for: three digits agree, the others do not."""

import torch

from assay import kernel

DETECTOR = "values"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    torch.ops.aten.gelu.out(x, approximate="tanh", out=out)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
