"""Every result is kept, in case somebody asks again: a cache without a bound, and the machine runs out of memory."""

import torch

from assay import kernel

DETECTOR = "memory"
WORKLOAD = "n=100000,dtype=fp32"
MEMORY = 1.0
kept: list[torch.Tensor] = []


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
    for step in range(10_000):  # as many calls as an epoch makes
        kept.append(out.cpu() + step)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
