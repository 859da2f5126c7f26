"""Keeps the pointers of its first call, as a captured graph does: later calls with other tensors read
the old ones."""

import torch

from assay import kernel

DETECTOR = "unstable"
WORKLOAD = "n=1000,dtype=fp32"
plans: dict = {}


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    torch.ops.aten.gelu.out(plans.setdefault(tuple(x.shape), x), out=out)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
