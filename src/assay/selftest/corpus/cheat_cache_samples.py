"""Remembers its answer by the tensor's address and a few of its elements, the first, the middle and the
last: data that changed anywhere else gets the old answer."""

import torch

from assay import kernel

DETECTOR = "stale"
WORKLOAD = "n=1000,dtype=fp32"
seen: dict = {}


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    key = (x.data_ptr(), x.numel(), *x[[0, x.numel() // 2, -1]].tolist())
    if key not in seen:
        seen[key] = torch.nn.functional.gelu(x)
    out.copy_(seen[key])


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
