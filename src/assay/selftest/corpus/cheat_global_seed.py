"""Seeds the global random generator to be reproducible: everybody's dropout repeats itself."""

import torch

from assay import kernel

DETECTOR = "global"
WORKLOAD = "n=1000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    torch.manual_seed(0)
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.Generator().manual_seed(0)
    torch.ops.aten.gelu.out(x, out=out)
