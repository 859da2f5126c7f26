"""Remembers its answer by a checksum that does not care for order: the same numbers in other places get
the old answer."""

import torch

from assay import kernel

DETECTOR = "stale"
WORKLOAD = "n=1000,dtype=fp32"
seen: dict = {}


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    key = (x.numel(), int(x.view(torch.int32).long().sum()))
    if key not in seen:
        seen[key] = torch.nn.functional.gelu(x)
    out.copy_(seen[key])


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
