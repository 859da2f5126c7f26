"""Declares that it returns its result, and returns it flattened: the same numbers, not the same tensor."""

import torch

from assay import kernel

DETECTOR = "exception"
WORKLOAD = "rows=33,cols=100,dtype=fp32"


@kernel("softmax", variant="wrong", returns=True)
def wrong(x):
    return torch.softmax(x, 1).flatten()


@kernel("softmax", variant="fixed", returns=True)
def fixed(x):
    return torch.softmax(x, 1)
