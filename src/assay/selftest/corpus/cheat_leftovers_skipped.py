"""Computes only where the output does not hold a finite number yet, taking any such number for a result it
already wrote: whatever stood in the memory before is handed out."""

import torch

from assay import kernel

DETECTOR = "unwritten"
WORKLOAD = "n=1000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    todo = ~out.isfinite()
    out[todo] = torch.nn.functional.gelu(x)[todo]


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
