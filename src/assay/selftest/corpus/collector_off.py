"""Switches Python's garbage collector off so that it never runs inside a timed call, and leaves it off."""

import gc

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "settings"
WORKLOAD = "n=20000,dtype=fp32"


@kernel("gelu", variant="wrong", backend="torch")
def wrong(x, *, out):
    gc.disable()
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed", backend="torch")
def fixed(x, *, out):
    was = gc.isenabled()
    gc.disable()
    torch.ops.aten.gelu.out(x, out=out)
    if was:
        gc.enable()
