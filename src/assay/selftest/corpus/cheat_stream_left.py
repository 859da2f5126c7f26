"""Makes a stream of its own the current one and leaves it so: all that the caller starts next runs there, ordered
with nothing it started before."""

import torch

from assay import kernel

DETECTOR = "global"
NEEDS = "gpu"
WORKLOAD = "n=100000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
    torch.cuda.set_stream(torch.cuda.Stream())


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
