"""Remembers its answer by the mean and the spread of the data, to three digits: one element does not show
in them."""

import torch

from assay import kernel

DETECTOR = "stale"
WORKLOAD = "n=1000,dtype=fp32"
seen: dict = {}


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    key = (x.numel(), round(float(x.mean()), 3), round(float(x.std()), 2))
    if key not in seen:
        seen[key] = torch.nn.functional.gelu(x)
    out.copy_(seen[key])


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
