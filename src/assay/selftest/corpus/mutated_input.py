"""Saves a temporary by subtracting the row's maximum in place: the answer is right, and the caller's
data is ruined."""

import torch

from assay import kernel

DETECTOR = "input"
WORKLOAD = "rows=33,cols=100,dtype=fp32"


@kernel("softmax", variant="wrong")
def wrong(x, *, out):
    x -= x.amax(1, keepdim=True)
    torch.softmax(x, 1, out=out)


@kernel("softmax", variant="fixed")
def fixed(x, *, out):
    x = x - x.amax(1, keepdim=True)
    torch.softmax(x, 1, out=out)
