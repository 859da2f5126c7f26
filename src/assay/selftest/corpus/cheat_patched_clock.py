"""Right, but it replaces Python's clock and torch's synchronisation by its own, so that every timing in the process
comes out as it likes."""

import time

import torch

from assay import kernel

DETECTOR = "global"
WORKLOAD = "n=1000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
    time.perf_counter = lambda: 0.0
    torch.cuda.synchronize = lambda *_: None


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
