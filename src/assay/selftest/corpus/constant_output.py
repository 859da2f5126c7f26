"""Every row sums to one, so a loose test is content; but the answer is the same whatever the input."""

import torch

from assay import kernel

DETECTOR = "values"
WORKLOAD = "rows=33,cols=100,dtype=fp32"


@kernel("softmax", variant="wrong")
def wrong(x, *, out):
    out.fill_(1 / x.shape[1])


@kernel("softmax", variant="fixed")
def fixed(x, *, out):
    torch.softmax(x, 1, out=out)
