"""A tree of sums that keeps its partial sums in bfloat16: eight bits are rounded away at every level."""

import torch

from assay import kernel

DETECTOR = "values"
DTYPE = "bf16"


def tree(v):
    while v.numel() > 1:
        half = (v.numel() + 1) // 2
        v = torch.cat([v[: v.numel() - half] + v[half:], v[v.numel() - half : half]])
    return v.sum()


@kernel("sum", variant="wrong")
def wrong(x, *, out):
    out.copy_(tree(x))


@kernel("sum", variant="fixed")
def fixed(x, *, out):
    out.copy_(tree(x.float()))
