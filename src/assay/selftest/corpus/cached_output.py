"""Computes on the first call and copies that result on every later one: right for a test that never
changes its data."""

import torch

from assay import kernel

DETECTOR = "stale"
WORKLOAD = "n=1000,dtype=fp32"
seen: dict = {}


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    key = (x.data_ptr(), tuple(x.shape))
    if key not in seen:
        seen[key] = torch.nn.functional.gelu(x)
    out.copy_(seen[key])


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    out.copy_(torch.nn.functional.gelu(x))
