"""Sets a default device for what it allocates and leaves it: other people's tensors appear there."""

import torch

from assay import kernel

DETECTOR = "global"
WORKLOAD = "n=1000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    torch.set_default_device("cpu")
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    with torch.device("cpu"):
        torch.ops.aten.gelu.out(x, out=out)
