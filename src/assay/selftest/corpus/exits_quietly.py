"""Ends its process with exit code 0, which a harness that looks only at that takes for success."""

import os

import torch

from assay import kernel

DETECTOR = "exit"
WORKLOAD = "n=1000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    os._exit(0)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
