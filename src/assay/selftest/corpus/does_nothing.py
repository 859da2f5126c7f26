"""Does nothing at all, and hopes that the output still holds what another kernel computed there before."""

import torch

from assay import kernel

DETECTOR = "unwritten"
WORKLOAD = "n=1000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    pass


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
