"""Launches on a stream of its own without waiting for the caller's: it starts before its inputs are there."""

import torch

from assay import kernel

DETECTOR = "stream"
NEEDS = "gpu"
WORKLOAD = "n=100000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
