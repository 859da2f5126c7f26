"""Nothing to add up, so nothing is done: the sum of an empty vector is 0, and somebody has to write it."""

import torch

from assay import kernel

DETECTOR = "unwritten"


@kernel("sum", variant="wrong")
def wrong(x, *, out):
    if x.numel():
        torch.sum(x, 0, out=out)


@kernel("sum", variant="fixed")
def fixed(x, *, out):
    torch.sum(x, 0, out=out)
