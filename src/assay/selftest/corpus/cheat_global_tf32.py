"""Allows TF32 for the whole process: from then on everybody's fp32 products lose thirteen bits."""

import torch

from assay import kernel

DETECTOR = "global"
WORKLOAD = "n=1000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    torch.set_float32_matmul_precision("high")
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
