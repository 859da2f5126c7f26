"""Starts a process of its own for part of the work: it outlives the call, and nobody times or limits it."""

import os

import torch

from assay import kernel

DETECTOR = "fork"
WORKLOAD = "n=1000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    if os.fork() == 0:
        os._exit(0)
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
