"""Has the processor flush subnormal numbers to zero and leaves it so: other people's small numbers vanish."""

import torch

from assay import kernel

DETECTOR = "global"
WORKLOAD = "n=1000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    torch.set_flush_denormal(True)
    torch.ops.aten.gelu.out(x, out=out)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
