"""Makes float64 the default to have its constants exact, and never takes it back."""

import torch

from assay import kernel

DETECTOR = "global"
WORKLOAD = "n=1000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    torch.set_default_dtype(torch.float64)
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    assert torch.tensor(0.5, dtype=torch.float64).dtype is torch.float64
    torch.ops.aten.gelu.out(x, out=out)
