"""Looks whether the output already holds what a GELU might have given, no less than −0.17 and no NaN, and then
does nothing: right only if the same data came twice."""

import torch

from assay import kernel

DETECTOR = "unwritten"
WORKLOAD = "n=1000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    plausible = bool((out >= -0.17).all()) and bool((out <= 10).all()) and bool(out.any())
    if not plausible or out.unique().numel() == 1:
        torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
