"""Remembers its answer by every sixteenth element of the input: fifteen of sixteen changes go unnoticed."""

import torch

from assay import kernel

DETECTOR = "stale"
WORKLOAD = "n=1000,dtype=fp32"
seen: dict = {}


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    key = tuple(x[::16].tolist())
    if key not in seen:
        seen[key] = torch.nn.functional.gelu(x)
    out.copy_(seen[key])


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
