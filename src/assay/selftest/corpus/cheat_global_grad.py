"""Switches gradients off because it needs none: the caller's training step records nothing any more."""

import torch

from assay import kernel

DETECTOR = "global"
WORKLOAD = "n=1000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    torch.set_grad_enabled(False)
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    with torch.no_grad():
        torch.ops.aten.gelu.out(x, out=out)
